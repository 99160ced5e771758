package lint

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// lintFile returns the findings in a file, a line each. Its documents are checked one by one.
func lintFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	line := 0
	for manifest := range strings.SplitSeq(string(data), "\n---\n") {
		// Each by itself, at its line of the file.
		b.WriteString(lintText(t, filepath.Base(path), strings.Repeat("\n", line)+manifest))
		line += strings.Count(manifest, "\n") + 2
	}
	return b.String()
}

func lintText(t *testing.T, name, text string) string {
	t.Helper()
	report, err := Files(t.Context(), []File{{Name: name, Data: []byte(text)}}, gen.Noon)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, f := range report.Findings {
		fmt.Fprintf(&b, "%s:%d: %s: %s/%s: %s: %s\n", f.File, f.Line, f.Severity, f.Kind, f.Name, f.Path, f.Message)
	}
	return b.String()
}

// The findings of each file below testdata are beside it. test/api compares the same files with
// what a real API server says.
func TestFindings(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("finding manifests: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			got, golden := lintFile(t, file), strings.TrimSuffix(file, ".yaml")+".txt"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("findings -want +got (go test -update rewrites them):\n%s", diff)
			}
		})
	}
}

// notRefused are names of the pages that a manifest may have, with a value that is checked
// later, or that are no fields of a manifest.
var notRefused = regexp.MustCompile(`^(status.*|when|digest|NODE|DURATION|conditions.*|fixer|workflow/release|kubectl.*|parameters\.x|nodes\.x.*)$`)

// Each name of the pages has a manifest that uses it.
func TestEveryRenamedFieldHasAManifest(t *testing.T) {
	golden, err := os.ReadFile("testdata/refused/names.txt")
	if err != nil {
		t.Fatal(err)
	}
	for kind, rows := range renamedFields() {
		for _, r := range rows {
			_, name := splitPath(strings.TrimSuffix(r.path, "[]"))
			used := regexp.MustCompile(`(?m)error: ` + kind + `/\S+: (spec\.|\S+\.)` + regexp.QuoteMeta(name) + `\b`)
			if !notRefused.MatchString(r.path) && !strings.ContainsAny(r.path, ".[") && !used.Match(golden) {
				t.Errorf("no manifest of %s in testdata/refused/names.yaml uses %s: %s", kind, r.path, r.instead)
			}
		}
	}
}

func TestSyntaxErrorsHaveTheLineOfTheFile(t *testing.T) {
	for text, want := range map[string]string{
		"a: b: c\n": "f.yaml:1: error: /: : cannot be read as YAML: mapping values are not allowed in this context; a text that contains \": \" needs quotes, or a block: write prompt: |, and the text indented on the next lines\n",
		"kind: Pod\napiVersion: v1\n---\n\na: [b\n":                                                "f.yaml:4: error: /: : cannot be read as YAML: did not find expected ',' or ']'\n",
		"kind: Agent\nmetadata:\n\tname: a\n":                                                      "f.yaml:3: error: /: : cannot be read as YAML: found character that cannot start any token; YAML is indented with spaces: write spaces in place of the tab\n",
		"kind: Agent\nspec:\n  tools:\n  \t- builtin: Shell\n":                                     "f.yaml:4: error: /: : cannot be read as YAML: found character that cannot start any token; YAML is indented with spaces: write spaces in place of the tab\n",
		"metadata:\n  name: {{ .Release.Name }}\nspec:\n{{- if .Values.x }}\n  a: b\n{{- end }}\n": "f.yaml:4: error: /: : cannot be read as YAML: could not find expected ':'; it is a template of Helm: check what it renders with helm template CHART | kubectl deckhand lint -\n",
		"\x89PNG\x00\xff":                "f.yaml:1: error: /: : cannot be read as YAML: it is not a text in UTF-8\n",
		"kind: \xe4\n":                   "f.yaml:1: error: /: : cannot be read as YAML: it is not a text in UTF-8\n",
		"%YAML 1.2\n---\nname: values\n": "f.yaml:1: error: /: : cannot be read as YAML: found incompatible YAML document; kubectl reads YAML 1.1: remove the line that begins with %YAML\n",
		"":                               "",
		"# nothing\n---\n--- # more\n":   "",
		"name: values\n":                 "",
	} {
		if diff := cmp.Diff(want, lintText(t, "f.yaml", text)); diff != "" {
			t.Errorf("%q: -want +got:\n%s", text, diff)
		}
	}
}

func TestObjectsInListsHaveTheirOwnLines(t *testing.T) {
	const list = `apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Secret
  metadata: {name: s}
- apiVersion: deckhand.dev/v1alpha1
  kind: Model
  metadata: {name: m}
  spec:
    provider: OpenAI
    modelId: gpt-5
`
	if diff := cmp.Diff("f.yaml:12: error: Model/m: spec.modelId: unknown field; did you mean modelID?\n", lintText(t, "f.yaml", list)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A misspelled group is no other group.
func TestGroupsLikeOursAreMeantToBeOurs(t *testing.T) {
	for apiVersion, kind := range map[string]string{"deckhand.dv/v1alpha1": "Run", "dekhand.dev/v1": "Model", "agents.deckhand.dev/v1alpha1": "Agent", "deckhand.io/v1alpha1": "Workflow", "v1": "Agent", "v1alpha1": "Toolset", "batch/v1": "Schedule", "networking.k8s.io/v1": "Decision"} {
		want := fmt.Sprintf("f.yaml:1: error: %s/x: apiVersion: %s is not served: write apiVersion: deckhand.dev/v1alpha1\n", kind, apiVersion)
		if got := lintText(t, "f.yaml", "apiVersion: "+apiVersion+"\nkind: "+kind+"\nmetadata: {name: x}\n"); got != want {
			t.Errorf("%s: %s", apiVersion, got)
		}
	}
	for apiVersion, kind := range map[string]string{"v1": "Secret", "batch/v1": "Job", "kagent.dev/v1alpha2": "Agent", "argoproj.io/v1alpha1": "Workflow", "tekton.dev/v1": "Run", "deckhand.dv/v1": "Boat"} {
		if got := lintText(t, "f.yaml", "apiVersion: "+apiVersion+"\nkind: "+kind+"\nmetadata: {name: x}\n"); got != "" {
			t.Errorf("%s: %s", apiVersion, got)
		}
	}
}

func TestObjectsOfOtherGroupsAreNotChecked(t *testing.T) {
	report, err := Files(t.Context(), []File{{Name: "f.yaml", Data: []byte("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nquux: 1\n")}}, gen.Noon)
	if err != nil {
		t.Fatal(err)
	}
	want := &Report{Findings: []Finding{}, Skipped: []Skipped{{"f.yaml", 1, "Secret", "s"}}}
	if diff := cmp.Diff(want, report); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestALargeSpecIsAnError(t *testing.T) {
	manifest := func(size int) string {
		return `{apiVersion: deckhand.dev/v1alpha1, kind: Model, metadata: {name: m}, spec: {provider: OpenAI, modelID: m, apiKeySecretRef: {name: a, key: b}, inference: {extra: {a: "` + strings.Repeat("x", size) + `"}}}}`
	}
	got := lintText(t, "model.yaml", manifest(300<<10))
	want := "model.yaml:1: error: Model/m: spec: has 300 KiB of JSON; at most 256 are allowed, since the operator keeps it in memory. Shorten spec.inference, which has 300 KiB\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := lintText(t, "model.yaml", manifest(10)); got != "" {
		t.Errorf("a small spec: %s", got)
	}
}

// The operator ends a Run whose task does not fit a pod, also if it is smaller than the schema allows.
func TestATaskThatDoesNotFitAPodIsAnError(t *testing.T) {
	const run = "apiVersion: deckhand.dev/v1alpha1\nkind: Run\nmetadata: {name: r}\nspec: {agent: a, prompt: %q}\n"
	const schedule = "apiVersion: deckhand.dev/v1alpha1\nkind: Schedule\nmetadata: {name: s}\nspec: {schedule: '0 3 * * *', runTemplate: {spec: {agent: a, prompt: %q}}}\n"
	const agent = "---\napiVersion: deckhand.dev/v1alpha1\nkind: Agent\nmetadata: {name: a}\nspec: {model: m, instructions: x}\n"
	for name, tc := range map[string]struct {
		text    string
		size    int
		refused bool
	}{
		"a prompt that fits":                   {run, 48000, false},
		"a prompt that does not":               {run, 49152, true},
		"a prompt of an Agent of the files":    {run + agent, 60000, true},
		"a prompt of a Schedule that does not": {schedule, 49152, true},
		"a prompt of a Schedule that fits":     {schedule + agent, 48000, false},
	} {
		got := lintText(t, "f.yaml", fmt.Sprintf(tc.text, strings.Repeat("x", tc.size)))
		if is := strings.Contains(got, "bytes; at most 49152 fit a pod"); is != tc.refused {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := lintText(t, "f.yaml", fmt.Sprintf(run, "x"+strings.Repeat("\n", 25000)+"x")); !strings.Contains(got, "at most 49152 fit a pod") {
		t.Errorf("line ends are two bytes of JSON: %s", got)
	}
}

// A name of a tool, as other programs or the built-ins themselves have it, is not guessed by its letters.
func TestNamesOfToolsNameTheirBuiltin(t *testing.T) {
	for tool, want := range map[string]string{
		"Bash": ": write tools: [{builtin: Shell}]", "bash": ": write tools: [{builtin: Shell}]", "WebFetch": ": write tools: [{builtin: Browse}]",
		"Edit":         "; Edit is a tool of the built-in Files: write builtin: Files",
		"shell_output": "; shell_output is a tool of the built-in Shell: write builtin: Shell",
		"ShellKill":    "; ShellKill is a tool of the built-in Shell: write builtin: Shell",
		"shell":        "; did you mean Shell?",
	} {
		got := lintText(t, "f.yaml", "apiVersion: deckhand.dev/v1alpha1\nkind: Agent\nmetadata: {name: a}\nspec: {model: m, instructions: x, tools: [{builtin: "+tool+"}]}\n")
		if !strings.HasSuffix(strings.SplitN(got, "\n", 2)[0], `"Shell", "Python"`+want) {
			t.Errorf("%s: %s", tool, got)
		}
	}
}

func TestValuesThatYAMLReadsAsBooleansNameTheEnumValue(t *testing.T) {
	for value, want := range map[string]string{"off": `"Off"`, "Off": `"Off"`, "no": `"Off"`, "false": `"Off"`, "on": `"on"`} {
		got := lintText(t, "f.yaml", "apiVersion: deckhand.dev/v1alpha1\nkind: Model\nmetadata: {name: m}\nspec: {provider: Ollama, modelID: x, inference: {reasoning: "+value+"}}\n")
		if !strings.Contains(got, "spec.inference.reasoning: must be of type string, not boolean: write it in quotes: "+want+"\n") {
			t.Errorf("%s: %s", value, got)
		}
	}
}

func TestAnObjectOfAWrongTypeIsLoadedByItsName(t *testing.T) {
	for _, text := range []string{
		"kind: Model\nmetadata: {name: m}\nspec: {provider: Ollama, modelID: x, inference: {reasoning: off}}\n",
		"kind: Run\nmetadata: {name: m}\nspec: {agent: a, prompt: 1}\n",
	} {
		report, _, err := Load(t.Context(), []File{{Name: "f.yaml", Data: []byte("apiVersion: deckhand.dev/v1alpha1\n" + text)}}, gen.Noon)
		if err != nil || report.Count(Error) != 1 {
			t.Errorf("%s: %v, %v", text, err, report)
		}
	}
}

func TestEachOfSeveralErrorsIsAFinding(t *testing.T) {
	one, two := errors.New("one"), errors.New("two")
	for name, tc := range map[string]struct {
		err  error
		want []error
	}{
		"none":               {nil, nil},
		"one":                {one, []error{one}},
		"two":                {errors.Join(one, two), []error{one, two}},
		"joined joined ones": {errors.Join(errors.Join(one, two), nil, one), []error{one, two, one}},
	} {
		if got := each(tc.err); !slices.Equal(got, tc.want) {
			t.Errorf("%s: %v, want %v", name, got, tc.want)
		}
	}
	const schedule = "apiVersion: deckhand.dev/v1alpha1\nkind: Schedule\nmetadata: {name: s}\nspec: {schedule: 0 0 30 2 *, runTemplate: {spec: {agent: a, prompt: x, input: {y: 1}}}}\n---\n" +
		"apiVersion: deckhand.dev/v1alpha1\nkind: Model\nmetadata: {name: m}\nspec: {provider: Ollama, modelID: x}\n---\n" +
		"apiVersion: deckhand.dev/v1alpha1\nkind: Agent\nmetadata: {name: a}\nspec: {model: m, instructions: x}\n"
	if got := lintText(t, "f.yaml", schedule); strings.Count(got, "error: Schedule/s") != 2 {
		t.Errorf("a date that never comes, and an input that is not declared: %s", got)
	}
}

// A Run that limits its cost needs prices, though its Agent does not.
func TestACostWithoutPricesIsFound(t *testing.T) {
	got := lintText(t, "a.yaml", `apiVersion: deckhand.dev/v1alpha1
kind: Model
metadata: {name: m}
spec: {provider: OpenAICompatible, modelID: x, endpoint: "http://m/v1"}
---
apiVersion: deckhand.dev/v1alpha1
kind: Agent
metadata: {name: a}
spec: {model: m, instructions: Work.}
---
apiVersion: deckhand.dev/v1alpha1
kind: Run
metadata: {name: r}
spec: {agent: a, prompt: Work., limits: {cost: 1USD}}
`)
	if want := `needs to know what Model "m" costs. Set spec.prices of the Model, or remove limits.cost`; !strings.Contains(got, want) {
		t.Errorf("the finding is\n%s\nand lacks\n%s", got, want)
	}
}

// A Schedule's Run is checked like a Run, and the finding is on the field.
func TestALimitAboveTheAgentsIsFoundOnItsField(t *testing.T) {
	got := lintText(t, "a.yaml", `apiVersion: deckhand.dev/v1alpha1
kind: Model
metadata: {name: m}
spec: {provider: OpenAICompatible, modelID: x, endpoint: "http://m/v1"}
---
apiVersion: deckhand.dev/v1alpha1
kind: Agent
metadata: {name: a}
spec: {model: m, instructions: Work., limits: {steps: 5}}
---
apiVersion: deckhand.dev/v1alpha1
kind: Schedule
metadata: {name: s}
spec: {schedule: "0 * * * *", runTemplate: {spec: {agent: a, prompt: Work., limits: {steps: 9}}}}
`)
	if want := "a.yaml:14: error: Schedule/s: spec.runTemplate.spec.limits.steps: is 9, and Agent a allows 5. "; !strings.Contains(got, want) {
		t.Errorf("want %q in %s", want, got)
	}
}

// The API server's packages find what is wrong in the order of maps.
func TestFindingsOnOneLineHaveAFixedOrder(t *testing.T) {
	const agent = "{apiVersion: deckhand.dev/v1alpha1, kind: Agent, metadata: {name: a}, spec: {model: 1, instructions: 2, concurrency: x, timeout: 3, limits: {steps: x, cost: 1, tokens: x}}}\n"
	first := lintText(t, "f.yaml", agent)
	if strings.Count(first, "\n") < 6 {
		t.Fatalf("findings:\n%s", first)
	}
	for range 20 {
		if diff := cmp.Diff(first, lintText(t, "f.yaml", agent)); diff != "" {
			t.Fatalf("another order:\n%s", diff)
		}
	}
}
