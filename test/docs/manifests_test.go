package docs_test

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/yaml"
	syaml "sigs.k8s.io/yaml"
)

// found returns the files below the folders, and of the root itself, with an
// extension.
func found(t *testing.T, extension string, folders ...string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, "*"+extension))
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() && filepath.Ext(path) == extension {
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(files) == 0 {
		t.Fatalf("there is no file *%s", extension)
	}
	return files
}

// Two examples that are applied to one namespace do not overwrite each other's
// objects.
func TestNamesOfExamplesAreUnique(t *testing.T) {
	owner := map[string]string{}
	for _, file := range found(t, ".yaml", "examples") {
		reader := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(read(t, file))))
		for {
			doc, err := reader.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			var head struct {
				Kind     string
				Metadata struct{ Name, GenerateName string }
			}
			if err := errors.Join(err, syaml.Unmarshal(doc, &head)); err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			object := head.Kind + " " + head.Metadata.Name + head.Metadata.GenerateName
			if other, taken := owner[object]; taken {
				t.Errorf("%s is in %s and in %s", object, other, file)
			}
			owner[object] = file
		}
	}
}

var (
	placeholder = regexp.MustCompile(`\$\{\{.*?\}\}`)
	braces      = regexp.MustCompile(`(?:^|[\s:\-\[,{])\{([^{}]*)(?:\}|$)`)
	textKey     = regexp.MustCompile(`(?:^|[\s,])(prompt|instructions|message|reason): [^\x00]`)
)

// flowText returns the key of a text for people or models that a line has inside
// a mapping in braces.
func flowText(line string) string {
	line = placeholder.ReplaceAllString(line, "x")
	for {
		at := braces.FindStringSubmatchIndex(line)
		if at == nil {
			return ""
		}
		if m := textKey.FindStringSubmatch(line[at[2]:at[3]]); m != nil {
			return m[1]
		}
		line = line[:at[2]-1] + "\x00" + line[at[1]:] // next: the braces around it
	}
}

// A comma or a colon in a text inside braces ends it, or breaks the manifest: a
// reader who changes the text must not run into that.
func TestTextsOfManifestsAreNotInBraces(t *testing.T) {
	pages := found(t, ".md", "docs", "examples", "charts", "config")
	for _, file := range append(pages, found(t, ".yaml", "examples", "config/samples")...) {
		for i, line := range strings.Split(read(t, file), "\n") {
			if key := flowText(line); key != "" {
				t.Errorf("%s:%d: write %s on a line of its own: %s", file, i+1, key, strings.TrimSpace(line))
			}
		}
	}
}

func TestFlowText(t *testing.T) {
	for line, want := range map[string]string{
		`spec: {agent: writer, prompt: Write a haiku, please}`:          "prompt",
		`- {prompt: "Write: a haiku"}`:                                  "prompt",
		`    approval: {message: "Publish it?"}`:                        "message",
		`- {name: a, limits: {tokens: 1}, prompt: x}`:                   "prompt",
		`- {name: a, when: "${{ x.y }}", reason: x}`:                    "reason",
		`tools: [{agent: a, input: {prompt: x}}]`:                       "prompt",
		`spec: {agent: writer, prompt: Write a haiku,`:                  "prompt",
		`  prompt: Write a haiku, please`:                               "",
		`  message: Publish ${{ size(nodes.a.text) }} notes?`:           "",
		`  prompt: "x ${{ nodes.a.text }}, prompt: y"`:                  "",
		`properties: {prompt: {type: string}, message: {type: string}}`: "",
		`{"prompt":"x","message": "y"}`:                                 "",
	} {
		if got := flowText(line); got != want {
			t.Errorf("%s: %q, want %q", line, got, want)
		}
	}
}
