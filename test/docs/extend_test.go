package docs_test

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	block  = regexp.MustCompile("(?ms)^```(go|yaml)\n(.*?)^```$")
	option = regexp.MustCompile(`(?m)^func (With[A-Za-z]+)\(`)
)

// tight is a text without its white space, which a page may lay out anew.
func tight(text string) string { return strings.Join(strings.Fields(text), " ") }

// The pages on how to extend a runner show parts of the one that is built and
// tested, and nothing else.
func TestPagesShowTheExampleRunner(t *testing.T) {
	shown := map[string][]string{}
	for kind, pattern := range map[string]string{"go": "*.go", "yaml": "*.yaml"} {
		files, err := filepath.Glob(filepath.Join(root, "examples", "custom-runner*", pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("looking for the example: %v", err)
		}
		for _, file := range files {
			shown[kind] = append(shown[kind], tight(read(t, file)))
		}
	}
	for _, file := range []string{"main.go", "main_test.go"} {
		shown["go"] = append(shown["go"], tight(read(t, filepath.Join(root, "examples", "embedded", file))))
	}
	for _, name := range []string{"README", "provider", "tool", "backend", "store", "middleware", "embed"} {
		page := read(t, filepath.Join(root, "docs", "extend", name+".md"))
		blocks := block.FindAllStringSubmatch(page, -1)
		if len(blocks) == 0 || 2*len(blocks) != strings.Count(page, "```") {
			t.Errorf("%s.md has %d blocks of Go and YAML, and %d fences", name, len(blocks), strings.Count(page, "```"))
		}
		for _, b := range blocks {
			if !within(shown[b[1]], tight(b[2])) {
				t.Errorf("%s.md shows what no example has:\n%s", name, b[2])
			}
		}
	}
}

func within(files []string, text string) bool {
	for _, file := range files {
		if strings.Contains(file, text) {
			return true
		}
	}
	return false
}

// Whatever a runner can be built with is on a page and in the example.
func TestOptionsAreExplained(t *testing.T) {
	page := read(t, filepath.Join(root, "docs", "extend", "README.md"))
	example := read(t, filepath.Join(root, "examples", "custom-runner", "main.go"))
	options := option.FindAllStringSubmatch(read(t, filepath.Join(root, "runner", "main.go")), -1)
	if len(options) == 0 {
		t.Fatal("there are no options")
	}
	for _, m := range options {
		if !strings.Contains(page, "`runner."+m[1]+"`") || !strings.Contains(example, "runner."+m[1]+"(") {
			t.Errorf("runner.%s is not on the page, or not in the example", m[1])
		}
	}
}

// A directory of this module that the example is built from and the context of its
// Dockerfile does not have fails its build.
func TestTheDockerfileOfTheExampleCopiesItsSources(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-C", root, "-deps", "./runner").Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	dockerfile := read(t, filepath.Join(root, "examples", "custom-runner", "Dockerfile"))
	ignored := read(t, filepath.Join(root, "examples", "custom-runner", "Dockerfile.dockerignore"))
	dirs := map[string]bool{}
	for line := range strings.FieldsSeq(string(out)) {
		if rest, ours := strings.CutPrefix(line, "github.com/deckhand-dev/deckhand/"); ours {
			dir, _, _ := strings.Cut(rest, "/")
			dirs[dir] = true
		}
	}
	if len(dirs) == 0 {
		t.Fatal("the runner has no packages")
	}
	for dir := range dirs {
		if copied := "COPY " + dir + " " + dir + "\n"; !strings.Contains(dockerfile, copied) {
			t.Errorf("examples/custom-runner/Dockerfile has no line %q", copied)
		}
		if kept := "!" + dir + "\n"; !strings.Contains(ignored, kept) {
			t.Errorf("examples/custom-runner/Dockerfile.dockerignore has no line %q", kept)
		}
	}
}
