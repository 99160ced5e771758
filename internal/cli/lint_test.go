package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/internal/cli/terminal"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

const (
	goodManifest = "apiVersion: deckhand.dev/v1alpha1\nkind: Model\nmetadata: {name: m}\nspec: {provider: OpenAI, modelID: gpt-5, apiKeySecretRef: {name: keys, key: key}}\n"
	badManifest  = "apiVersion: deckhand.dev/v1alpha1\nkind: Model\nmetadata: {name: bad}\nspec: {provider: OpenAI, modelId: gpt-5}\n"
)

// runLint runs lint in a directory with some files.
func runLint(t *testing.T, files map[string]string, in string, args ...string) (code int, out, errOut string) {
	t.Helper()
	return runManifests(t, files, in, append([]string{"lint"}, args...)...)
}

// runManifests runs a command in a directory with some files.
func runManifests(t *testing.T, files map[string]string, in string, args ...string) (code int, out, errOut string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	var stdout, stderr strings.Builder
	f := &Factory{Streams: terminal.Streams{Now: func() time.Time { return gen.Noon }, In: strings.NewReader(in), Out: &stdout, Err: &stderr}}
	code = Main(t.Context(), f, "test", args)
	return code, stdout.String(), stderr.String()
}

func TestLint(t *testing.T) {
	secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n"
	cases := map[string]struct {
		files map[string]string
		in    string
		args  []string
		code  int
		out   string
		err   string
	}{
		"a good file":                     {map[string]string{"a.yaml": goodManifest}, "", []string{"a.yaml"}, 0, "", "Checked 1 object: 0 warnings, no errors\n"},
		"a bad file":                      {map[string]string{"a.yaml": badManifest}, "", []string{"a.yaml"}, 1, "a.yaml:4: Model/bad: spec.modelId: unknown field; did you mean modelID?\n", "Error: 1 error in 1 object: correct the lines above\n"},
		"standard input":                  {nil, badManifest, []string{"-"}, 1, "stdin:4: Model/bad: spec.modelId: unknown field; did you mean modelID?\n", "Error: 1 error in 1 object: correct the lines above\n"},
		"a directory":                     {map[string]string{"d/a.yaml": goodManifest, "d/e/b.yml": badManifest, "d/.hidden/c.yaml": badManifest, "d/README.md": "a: b: c"}, "", []string{"d"}, 1, "d/e/b.yml:4: Model/bad: spec.modelId: unknown field; did you mean modelID?\n", "Error: 1 error in 2 objects: correct the lines above\n"},
		"an empty one":                    {map[string]string{"d/README.md": ""}, "", []string{"d"}, 1, "", "Error: d has no .yaml, .yml or .json file: name another directory, or a file\n"},
		"a file of another format":        {map[string]string{"README.md": "a: b: c"}, "", []string{"README.md"}, 2, "", "Error: README.md is no manifest (.yaml, .yml, .json): name one, its directory, or - for standard input\n"},
		"a program":                       {map[string]string{"main.go": "package main"}, "", []string{"main.go"}, 2, "", "Error: main.go is no manifest (.yaml, .yml, .json): name one, its directory, or - for standard input\n"},
		"a manifest without an extension": {map[string]string{"model": goodManifest}, "", []string{"model"}, 0, "", "Checked 1 object: 0 warnings, no errors\n"},
		"files as kubectl takes them":     {map[string]string{"a.yaml": goodManifest, "b.yaml": badManifest}, "", []string{"-f", "a.yaml", "b.yaml"}, 1, "b.yaml:4: Model/bad: spec.modelId: unknown field; did you mean modelID?\n", "Error: 1 error in 2 objects: correct the lines above\n"},
		"no such file":                    {nil, "", []string{"a.yaml"}, 1, "", "Error: stat a.yaml: no such file or directory: name a file, a directory, or - for standard input\n"},
		"nothing":                         {nil, "", nil, 2, "", "Error: usage: kubectl deckhand lint FILE|DIRECTORY|-... [flags]. See: kubectl deckhand lint --help\n"},
		"a skill":                         {map[string]string{"s/go-review/SKILL.md": "---\nname: go-review\ndescription: Reviews Go.\n---\n"}, "", []string{"s/go-review/SKILL.md"}, 0, "", "Checked 1 object: 0 warnings, no errors\n"},
		"the folder of a bad skill":       {map[string]string{"go-review/SKILL.md": "---\nname: review\ndescription: Reviews Go.\n---\n", "go-review/a.yaml": badManifest}, "", []string{"go-review/"}, 1, "go-review/SKILL.md:2: Skill/go-review: the name is \"review\", and the folder is \"go-review\": both must be the same\n", "Error: 1 error in 1 object: correct the lines above\n"},
		"what is unchecked":               {map[string]string{"a.yaml": secret}, "", []string{"-v", "a.yaml"}, 1, "a.yaml:1: Secret/s: not checked: it is not of the group deckhand.dev\n", "Error: no objects of deckhand.dev were found: nothing was checked\n"},
		"what is unchecked beside others": {map[string]string{"a.yaml": goodManifest + "---\n" + secret}, "", []string{"a.yaml"}, 0, "", "Checked 1 object: 0 warnings, no errors; 1 object of other groups not checked (-v lists them)\n"},
		"another group with a kind of ours": {
			map[string]string{"a.yaml": goodManifest + "---\napiVersion: v1\nkind: Agent\nmetadata: {name: a}\n"},
			"",
			[]string{"a.yaml"},
			1,
			"a.yaml:6: Agent/a: apiVersion: v1 is not served: write apiVersion: deckhand.dev/v1alpha1\n", "Error: 1 error in 2 objects: correct the lines above\n",
		},
		"control characters of a manifest are escaped": {nil, "apiVersion: deckhand.dev/v1alpha1\nkind: Model\nmetadata: {name: \"m\\e[31m\"}\nspec: {provider: OpenAI, modelID: gpt-5, \"a\\e[0m\": 1}\n", []string{"-"}, 1, "", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			code, out, errOut := runLint(t, tc.files, tc.in, tc.args...)
			if strings.Contains(out+errOut, "\x1b") {
				t.Errorf("the output has a control character: %q", out)
			}
			if tc.out == "" && tc.err == "" {
				tc.out, tc.err = out, errOut
			}
			if diff := cmp.Diff([]any{tc.code, tc.out, tc.err}, []any{code, out, errOut}); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestLintFollowsALinkToTheDirectory(t *testing.T) {
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "a.yaml"), goodManifest)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	s := newSession(t)
	if code := s.run(t, "lint", link); code != exit.OK || s.err.String() != "Checked 1 object: 0 warnings, no errors\n" {
		t.Errorf("exit code %d: %s", code, s.text())
	}
}

func TestLintPrintsJSON(t *testing.T) {
	code, out, _ := runLint(t, nil, badManifest, "-", "-o", "json")
	const want = `{
    "findings": [
        {
            "file": "stdin",
            "line": 4,
            "severity": "error",
            "kind": "Model",
            "name": "bad",
            "path": "spec.modelId",
            "message": "unknown field; did you mean modelID?",
            "refusedBy": "APIServer"
        }
    ],
    "notChecked": [],
    "objects": 1
}
`
	if diff := cmp.Diff(want, out); diff != "" || code != exit.Error {
		t.Errorf("exit code %d, -want +got:\n%s", code, diff)
	}
}
