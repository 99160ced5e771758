package cli

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/internal/cli/exit"
)

const (
	oldManifest  = "# The model.\napiVersion: deckhand.dev/v1alpha1\nkind: Model\nmetadata: {name: m}\nspec:\n  provider: Kimi # fast\n  modelID: k2\n  kimi: {format: Anthropic}\n  apiKeySecretRef: {name: keys, key: key}\n"
	oldConverted = "# The model.\napiVersion: deckhand.dev/v1alpha1\nkind: Model\nmetadata: {name: m}\nspec:\n  provider: Kimi # fast\n  modelID: k2\n  api: Messages\n  apiKeySecretRef: {name: keys, key: key}\n"
	oldChange    = "a.yaml:8: Model/m: spec.kimi: now spec.api: Messages\n"
)

const aliasManifest = "apiVersion: deckhand.dev/v1alpha1\nkind: Model\nmetadata: {name: &n m}\nspec: {provider: OpenAI, model: *n, apiKeySecretRef: {name: keys, key: key}}\n"

const loneWorkflow = "apiVersion: deckhand.dev/v1alpha1\nkind: Workflow\nmetadata: {name: w}\nspec: {input: {fields: [{name: x}]}, nodes: [{name: first, agent: a, prompt: \"${{ parameters['x'] }}\"}, {name: then, agent: a, prompt: 'parameters is a word'}]}\n"

func TestConvert(t *testing.T) {
	const left = "Still refused, by lines of the converted manifests:\na.yaml:4: Model/bad: spec.modelId: unknown field; did you mean modelID?\nError: 1 error in 1 object: correct the lines above\n"
	cases := map[string]struct {
		files map[string]string
		in    string
		args  []string
		code  int
		out   string
		err   string
		after map[string]string
	}{
		"a file of before": {
			files: map[string]string{"a.yaml": oldManifest}, args: []string{"-f", "a.yaml"},
			out: oldConverted, err: oldChange + "Converted 1 field of 1 object\n", after: map[string]string{"a.yaml": oldManifest},
		},
		"a file of today": {
			files: map[string]string{"a.yaml": goodManifest}, args: []string{"a.yaml"},
			out: goodManifest, err: "Converted 0 fields of 1 object\n",
		},
		"in place": {
			files: map[string]string{"d/a.yaml": oldManifest, "d/b.yaml": goodManifest}, args: []string{"-f", "d", "--write"},
			err: "d/" + oldChange + "Converted 1 field of 2 objects\n", after: map[string]string{"d/a.yaml": oldConverted, "d/b.yaml": goodManifest},
		},
		"several files are one stream": {
			files: map[string]string{"a.yaml": oldManifest, "b.yaml": strings.Replace(goodManifest, "{name: m}", "{name: other}", 1)}, args: []string{"a.yaml", "b.yaml"},
			out: oldConverted + "---\n" + strings.Replace(goodManifest, "{name: m}", "{name: other}", 1), err: oldChange + "Converted 1 field of 2 objects\n",
		},
		"standard input": {
			in: oldManifest, args: []string{"-"},
			out: oldConverted, err: "stdin" + strings.TrimPrefix(oldChange, "a.yaml") + "Converted 1 field of 1 object\n",
		},
		"standard input in place": {args: []string{"-w", "-"}, code: exit.Usage, err: "Error: standard input cannot be written in place: remove --write, or name a file\n"},
		"a field that is not converted is named": {
			files: map[string]string{"a.yaml": badManifest}, args: []string{"a.yaml"}, code: exit.Error,
			out: badManifest, err: "Converted 0 fields of 1 object\n" + left,
		},
		"names that nothing refuses are listed": {
			files: map[string]string{"a.yaml": goodManifest + "---\nkind: NetworkPolicy\napiVersion: networking.k8s.io/v1\nspec: {podSelector: {matchLabels: {deckhand.dev/node: build}}}\n"}, args: []string{"-w", "a.yaml"},
			err: "Converted 0 fields of 1 object\nTo change yourself, by lines of the converted manifests:\n" +
				"a.yaml:" + strconv.Itoa(strings.Count(goodManifest, "\n")+4) + ": deckhand.dev/node is now deckhand.dev/workflow-node\n",
		},
		"a document with aliases": {
			files: map[string]string{"a.yaml": aliasManifest}, args: []string{"a.yaml"}, code: exit.Error, out: aliasManifest,
			err: "Converted 0 fields of 1 object\nStill refused, by lines of the converted manifests:\n" +
				"a.yaml:4: the document has YAML aliases, so it is not converted: write values in place of aliases such as *n\n" +
				"a.yaml:4: Model/m: spec.model: unknown field: write modelID: gpt-5-mini\n" +
				"Error: 1 error in 1 object: correct the lines above\n",
		},
		"a document with aliases and nothing to convert": {
			files: map[string]string{"a.yaml": strings.Replace(aliasManifest, "model:", "modelID:", 1)}, args: []string{"a.yaml"},
			out: strings.Replace(aliasManifest, "model:", "modelID:", 1), err: "Converted 0 fields of 1 object\n",
		},
		"a Workflow without its Agents": {
			files: map[string]string{"a.yaml": loneWorkflow}, args: []string{"-w", "a.yaml"},
			err: "a.yaml:4: Workflow/w: spec.nodes[0].prompt: now spec.nodes[0].prompt with the names of today\nConverted 1 field of 1 object\n" +
				"Not checked is what depends on objects that are not in the files: Agent a. Name their files too\n",
			after: map[string]string{"a.yaml": strings.Replace(loneWorkflow, "parameters", "input", 1)},
		},
		"nothing of the API": {
			files: map[string]string{"a.yaml": "kind: Pod\napiVersion: v1\n"}, args: []string{"a.yaml"}, code: exit.Error,
			out: "kind: Pod\napiVersion: v1\n", err: "Converted 0 fields of 0 objects\nError: no objects of deckhand.dev were found: nothing was checked\n",
		},
		"a file that is no text": {
			files: map[string]string{"a.yaml": "\x89PNG\x00\xff", "b.yaml": "kind: Pod\napiVersion: v1\n"}, args: []string{"a.yaml", "b.yaml"}, code: exit.Error,
			out: "kind: Pod\napiVersion: v1\n",
			err: "Converted 0 fields of 0 objects\nStill refused, by lines of the converted manifests:\n" +
				"a.yaml:1: cannot be read as YAML: it is not a text in UTF-8\nError: 1 error in 0 objects: correct the lines above\n",
		},
		"no file": {code: exit.Usage, err: "Error: usage: kubectl deckhand convert FILE|DIRECTORY|-... [flags]. See: kubectl deckhand convert --help\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			code, out, errOut := runManifests(t, tc.files, tc.in, append([]string{"convert"}, tc.args...)...)
			if diff := cmp.Diff([]any{tc.code, tc.out, tc.err}, []any{code, out, errOut}); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			for file, want := range tc.after {
				if got, err := os.ReadFile(file); err != nil || string(got) != want {
					t.Errorf("%s: %v\n%s", file, err, cmp.Diff(want, string(got)))
				}
			}
		})
	}
}

// A link stays one, and a file keeps its mode.
func TestConvertInPlaceKeepsLinksAndModes(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "a.yaml"), filepath.Join(dir, "link.yaml")
	if err := os.WriteFile(file, []byte(oldManifest), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	s := newSession(t)
	if code := s.run(t, "convert", "-w", link); code != exit.OK {
		t.Fatal(s.text())
	}
	info, err := os.Lstat(link)
	if err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is a link no more: %v", err)
	}
	info, err = os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the mode is %v: %v", info.Mode(), err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 2 {
		t.Errorf("%d files are left: %v", len(entries), err)
	}
}
