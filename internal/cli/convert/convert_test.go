package convert_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/internal/cli/convert"
	"github.com/deckhand-dev/deckhand/internal/cli/lint"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s -want +got (go test -update rewrites it):\n%s", name, diff)
	}
}

// one converts a file.
func one(data string) (string, []convert.Change) {
	out, changes := convert.Files([]lint.File{{Name: "f.yaml", Data: []byte(data)}})
	return string(out[0].Data), changes
}

// refused returns what the API server and the operator refuse in a file, a line each.
func refused(t *testing.T, data string) string {
	t.Helper()
	report, err := lint.Files(t.Context(), []lint.File{{Name: "f.yaml", Data: []byte(data)}}, gen.Noon)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range report.Findings {
		if f.Severity == lint.Error {
			fmt.Fprintf(&b, "%s/%s: %s: %s\n", f.Kind, f.Name, f.Path, f.Message)
		}
	}
	return b.String()
}

func list(changes []convert.Change) string {
	var b strings.Builder
	for _, c := range changes {
		fmt.Fprintf(&b, "%d: %s/%s: %s: now %s\n", c.Line, c.Kind, c.Name, c.Path, c.Now)
	}
	return b.String()
}

// Each row of docs/reference/api-changes.md that can be converted is in before.yaml.
func TestManifestsOfBefore(t *testing.T) {
	before, err := os.ReadFile("testdata/before.yaml")
	if err != nil {
		t.Fatal(err)
	}
	after, changes := one(string(before))
	golden(t, "after.yaml", []byte(after))
	golden(t, "changes.txt", []byte(list(changes)))
	if got := refused(t, after); got != "" {
		t.Errorf("what was converted is refused:\n%s", got)
	}
	if again, changes := one(after); again != after || len(changes) > 0 {
		t.Errorf("what was converted is converted again: %s", list(changes))
	}
}

// What is refused is converted, or named with what to write.
func TestRefusedNamesAreConvertedOrNamed(t *testing.T) {
	data, err := os.ReadFile("../lint/testdata/refused/names.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	line := 1
	for manifest := range strings.SplitSeq(string(data), "\n---\n") {
		after, changes := one(manifest)
		left := refused(t, after)
		if len(changes) == 0 && left == "" {
			t.Errorf("names.yaml:%d is not converted, and nothing says what to write", line)
		}
		fmt.Fprintf(&b, "names.yaml:%d\n%s", line, list(changes))
		for text := range strings.Lines(left) { // internal/cli/lint has the golden file of its messages
			fields := strings.SplitN(text, ": ", 3)
			fmt.Fprintf(&b, "refused: %s: %s\n", fields[0], fields[1])
		}
		line += strings.Count(manifest, "\n") + 2
	}
	golden(t, "names.txt", b.Bytes())
}

// What has two readings, or is more than a document, stays as it is, and lint says what to write.
func TestDocumentsThatAreNotClearStay(t *testing.T) {
	const agent = "apiVersion: deckhand.dev/v1alpha1\nkind: Agent\nmetadata: {name: a}\nspec:\n  model: m\n  instructions: Do it.\n  events: Full\n"
	const inline = "{apiVersion: deckhand.dev/v1alpha1, kind: Agent, metadata: {name: b}, spec: {model: m, instructions: Do it., events: Full}}\n"
	const second = "write --- on a line of its own"
	for name, tc := range map[string]struct{ file, want string }{
		"a replaced field twice":                  {agent + "  events: Steps\n", "spec.events: duplicate field: remove it here or from line 7"},
		"another field twice":                     {agent + "  model: n1\n", "spec.model: duplicate field"},
		"spec twice":                              {agent + "spec: {model: m, instructions: Do it.}\n", "spec: duplicate field"},
		"a field twice in JSON":                   {`{"apiVersion":"deckhand.dev/v1alpha1","kind":"Agent","metadata":{"name":"a"},"spec":{"model":"m","instructions":"x","events":"Full","model":"n1"}}`, "spec.model: duplicate field"},
		"a document on the line of its separator": {"--- " + inline, second},
		"the same behind another":                 {agent + "--- " + inline, second},
		"the same in front of another":            {"--- " + inline + "---\n" + agent + "  model: n1\n", second},
		"a tag on the line of the separator":      {"--- !!map\n" + agent, second},
		"a document behind an end":                {agent + "...\n# more\n" + inline, second},
	} {
		after, changes := one(tc.file)
		if after != tc.file || len(changes) > 0 {
			t.Errorf("%s: it is rewritten: %s\n%s", name, list(changes), after)
		}
		if got := refused(t, tc.file); !strings.Contains(got, tc.want) {
			t.Errorf("%s: lint says %q, want %q", name, got, tc.want)
		}
	}
}

// Documents beside one that stays are converted.
func TestTheOtherDocumentsOfAFileAreConverted(t *testing.T) {
	const before = "--- {kind: List}\n---\napiVersion: deckhand.dev/v1alpha1\nkind: Agent\nmetadata: {name: a}\nspec:\n  model: m\n  events: Full\n... # over\n# the end\n"
	after, changes := one(before)
	if want := strings.Replace(before, "events:", "log:", 1); after != want || len(changes) != 1 {
		t.Errorf("converted is\n%s\nwant\n%s", after, want)
	}
}

// Manifests of today stay as they are, to the byte.
func TestManifestsOfTodayStay(t *testing.T) {
	files, err := filepath.Glob("../../../examples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("finding examples: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if after, changes := one(string(data)); after != string(data) || len(changes) > 0 {
			t.Errorf("%s is changed: %s", file, list(changes))
		}
	}
}

func TestWhatCouldLoseAValueStays(t *testing.T) {
	const head = "apiVersion: deckhand.dev/v1alpha1\nkind: %s\nmetadata: {name: x}\nspec:\n"
	for name, manifest := range map[string]string{
		"both fields":                       "Agent|  events: Steps\n  log: None\n",
		"a reference with another field":    "Model|  credentials: {secretName: a, key: b, optional: true}\n",
		"a reference without a value":       "Model|  credentials: {secretName, key}\n",
		"a format that never was":           "Model|  deepSeek: {format: Gemini}\n",
		"an alias":                          "Agent|  events: &x Steps\n  model: *x\n",
		"a field of a tool that has none":   "Agent|  tools:\n  - builtin: Files\n    hosts: [a.example]\n",
		"seconds that are no number":        "Agent|  workspace: {retainSeconds: 1h}\n",
		"both fields of retention":          "Agent|  workspace: {durability: Volume, retain: Never}\n  retention: {keepVolume: Always}\n",
		"a name of a tool in a text":        "Agent|  instructions: Use shell, not python.\n",
		"a test that compares no name":      "Agent|  policy:\n  - {name: r, when: tool.startsWith('sh'), answer: Deny}\n",
		"a condition that does not compile": "Agent|  policy:\n  - {name: r, when: tool == 'shell' &&, answer: Deny}\n",
		"a hook of an image of its own":     "Agent|  podTemplate: {runnerImage: \"acme/runner:1\"}\n  hooks:\n  - {name: h, tools: [shell]}\n",
		"a tool of a custom runner":         "Agent|  tools: [{custom: shell}]\n  policy:\n  - {name: r, when: tool == 'shell', answer: Deny}\n",
		"a loop with a session":             "Workflow|  nodes:\n  - name: a\n    loop: {session: Continue}\n",
		"no YAML":                           "Agent|  events: [\n",
	} {
		kind, spec, _ := strings.Cut(manifest, "|")
		before := fmt.Sprintf(head, kind) + spec
		if after, changes := one(before); after != before || len(changes) > 0 {
			t.Errorf("%s: %s\n%s", name, after, list(changes))
		}
	}
}

func TestFormsOfFiles(t *testing.T) {
	const head = "apiVersion: deckhand.dev/v1alpha1\nkind: Agent\nmetadata: {name: x}\n"
	const workflow = "apiVersion: deckhand.dev/v1alpha1\nkind: Workflow\nmetadata: {name: x}\nspec:\n"
	for name, tc := range map[string]struct{ before, after string }{
		"JSON stays JSON": {
			`{"apiVersion": "deckhand.dev/v1alpha1", "kind": "Agent", "metadata": {"name": "x"},` + "\n" + `"spec": {"instructions": "a <b>\u2028", "events": "Steps", "tools": [], "limits": {"steps": 3}}}`,
			`{"apiVersion":"deckhand.dev/v1alpha1","kind":"Agent","metadata":{"name":"x"},"spec":{"instructions":"a <b>\u2028","log":"Steps","tools":[],"limits":{"steps":3}}}` + "\n",
		},
		"JSON that is indented stays so": {
			"{\n\t\"apiVersion\": \"deckhand.dev/v1alpha1\",\n\t\"kind\": \"Agent\", \"spec\": {\"events\": \"Steps\"}\n}\n",
			"{\n  \"apiVersion\": \"deckhand.dev/v1alpha1\",\n  \"kind\": \"Agent\",\n  \"spec\": {\n    \"log\": \"Steps\"\n  }\n}\n",
		},
		"lines end as before": {
			strings.ReplaceAll(head+"spec:\n  events: Steps\n  model: m\n", "\n", "\r\n"),
			strings.ReplaceAll(head+"spec:\n  log: Steps\n  model: m\n", "\n", "\r\n"),
		},
		"a spec that is not last": {
			"kind: Agent\nspec:\n    events: Steps # x\n# above metadata\nmetadata: {name: x}\napiVersion: deckhand.dev/v1alpha1\n",
			"kind: Agent\nspec:\n    log: Steps # x\n# above metadata\nmetadata: {name: x}\napiVersion: deckhand.dev/v1alpha1\n",
		},
		"a removed entry": {
			"apiVersion: deckhand.dev/v1alpha1\nkind: Model\nspec:\n  azure: {apiVersion: v1}\n  # about the deployment\n  deployment: d\n\n  # about the provider\n  provider: Azure\n",
			"apiVersion: deckhand.dev/v1alpha1\nkind: Model\nspec:\n  azure: {apiVersion: v1, deployment: d}\n  # about the deployment\n\n  # about the provider\n  provider: Azure\n",
		},
		"lines of an entry that do not change": {
			workflow + "  nodes:\n  - name:   a   # why\n    # what it is given\n    with: {agent:   b}\n    when: >-\n      nodes.c.state == 'Succeeded' &&\n      nodes.d.state == 'Succeeded'\n\n      || true\n  - name:  b\n",
			workflow + "  nodes:\n  - name:   a   # why\n    # what it is given\n    input: {agent: b}\n    when: >-\n      nodes.c.state == 'Succeeded' &&\n      nodes.d.state == 'Succeeded'\n\n      || true\n  - name:  b\n",
		},
		"expressions in lines of their own": {
			workflow + "  nodes:\n  - name: a\n    prompt: |\n      a space at the end \n      ${{ parameters.x }}\n    when: >-\n      parameters.x == 'a' &&\n        size(parameters.x) > 2 # no comment\n      # neither\n    # a comment\n",
			workflow + "  nodes:\n  - name: a\n    prompt: |\n      a space at the end \n      ${{ input.x }}\n    when: >-\n      input.x == 'a' &&\n        size(input.x) > 2 # no comment\n      # neither\n    # a comment\n",
		},
		"no end of the last line": {head + "spec:\n  events: Steps", head + "spec:\n  log: Steps\n"},
	} {
		after, changes := one(tc.before)
		if diff := cmp.Diff(tc.after, after); diff != "" || len(changes) == 0 {
			t.Errorf("%s: %d changes -want +got:\n%s", name, len(changes), diff)
		}
	}
}
