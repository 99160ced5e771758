package docs_test

import (
	"bufio"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	syaml "sigs.k8s.io/yaml"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// examples are the manifests of the examples folder, one for each feature, the
// Decisions that go with them, and the one for a custom runner.
func examples(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, pattern := range []string{"*.yaml", "decisions/*.yaml", "custom-runner/*.yaml"} {
		found, err := filepath.Glob(filepath.Join(root, "examples", pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("looking for examples: %v", err)
		}
		files = append(files, found...)
	}
	return files
}

// Every example holds only fields that there are, says at its top what it shows,
// and leaves the namespace to whoever applies it.
func TestExamplesAreWellFormed(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := errors.Join(v1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	for _, file := range append(examples(t), filepath.Join(root, "examples", "custom-runner-template", "agent.yaml")) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			text := read(t, file)
			if !strings.HasPrefix(text, "# ") {
				t.Error("it does not begin with what it shows")
			}
			reader := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text)))
			for {
				doc, err := reader.Read()
				if errors.Is(err, io.EOF) {
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				strict(t, scheme, doc)
			}
		})
	}
}

// strict holds one object to its kind.
func strict(t *testing.T, scheme *runtime.Scheme, doc []byte) {
	t.Helper()
	var head struct {
		APIVersion, Kind string
		Metadata         struct{ Name, GenerateName, Namespace string }
	}
	if err := syaml.Unmarshal(doc, &head); err != nil {
		t.Fatal(err)
	}
	object, err := scheme.New(schema.FromAPIVersionAndKind(head.APIVersion, head.Kind))
	if err != nil {
		t.Fatal(err)
	}
	if err := syaml.UnmarshalStrict(doc, object); err != nil {
		t.Errorf("%s %s: %v", head.Kind, head.Metadata.Name, err)
	}
	if head.Metadata.Namespace != "" || head.Metadata.Name+head.Metadata.GenerateName == "" {
		t.Errorf("%s %s has a namespace, or no name", head.Kind, head.Metadata.Name)
	}
}

// Every example is in the table of examples and in the test that runs it.
func TestExamplesAreListedAndRun(t *testing.T) {
	page := read(t, filepath.Join(root, "examples", "README.md"))
	tests, err := filepath.Glob(filepath.Join(root, "test", "e2e", "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var stories strings.Builder
	for _, file := range tests {
		stories.WriteString(read(t, file))
	}
	for _, file := range examples(t) {
		name, err := filepath.Rel(filepath.Join(root, "examples"), file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(page, "]("+name+")") {
			t.Errorf("examples/README.md does not link to %s", name)
		}
		if !strings.Contains(stories.String(), `"`+name+`"`) {
			t.Errorf("no test of test/e2e runs %s", name)
		}
	}
	for _, m := range link.FindAllStringSubmatch(page, -1) {
		if _, err := os.Stat(filepath.Join(root, "examples", m[1])); err != nil {
			t.Errorf("examples/README.md links to %s, which is not there", m[1])
		}
	}
}

// Manifests can be applied side by side: none changes an object of another.
func TestExamplesHaveNamesOfTheirOwn(t *testing.T) {
	type object struct {
		Kind     string
		Metadata struct{ Name string }
	}
	owners := map[object]string{}
	for _, file := range found(t, ".yaml", "examples", "config/samples") {
		reader := yaml.NewYAMLReader(bufio.NewReader(strings.NewReader(read(t, file))))
		for {
			doc, err := reader.Read()
			if errors.Is(err, io.EOF) {
				break
			}
			var o object
			if err != nil || syaml.Unmarshal(doc, &o) != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if other := owners[o]; o.Metadata.Name != "" && other != "" {
				t.Errorf("%s and %s both have the %s %s", other, file, o.Kind, o.Metadata.Name)
			}
			owners[o] = file
		}
	}
}

// flowPrompt is a prompt of a Run within {}, where YAML ends it at the first comma.
var flowPrompt = regexp.MustCompile(`(?m)^ *spec: *\{.*\bprompt:`)

// A prompt is a block of text: in other styles YAML cuts it at a comma, or refuses a
// colon in it.
func TestPromptsOfRunsAreBlocks(t *testing.T) {
	line := regexp.MustCompile(`(?m)^  prompt: *[^| ]`)
	for _, file := range append(found(t, ".md", "docs"), found(t, ".yaml", "examples", "config/samples")...) {
		for doc := range strings.SplitSeq(read(t, file), "\n---\n") {
			if flowPrompt.MatchString(doc) || strings.Contains(doc, "kind: Run\n") && line.MatchString(doc) {
				t.Errorf("%s: write prompt: | and the text below it, instead of %q", file, strings.TrimSpace(flowPrompt.FindString(doc)+line.FindString(doc)))
			}
		}
	}
}
