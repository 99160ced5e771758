package lint

import (
	"cmp"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

const (
	agentsOfFields = `
- {apiVersion: deckhand.dev/v1alpha1, kind: Model, metadata: {name: m}, spec: {provider: Anthropic, modelID: x, apiKeySecretRef: {name: k, key: k}}}
- {apiVersion: deckhand.dev/v1alpha1, kind: Agent, metadata: {name: a}, spec: {model: m, instructions: Work.}}`
	workflowStart = agentsOfFields + `
- {apiVersion: deckhand.dev/v1alpha1, kind: Workflow, metadata: {name: w}, spec: {input: {fields: [{name: x}]}, nodes: [{name: first, agent: a, prompt: Go}`
	toolsetStart = `
- {apiVersion: deckhand.dev/v1alpha1, kind: Toolset, metadata: {name: t}, spec: {requests: {baseURL: "https://api.example", tools: [{name: do, description: Does it., method: POST, input: {fields: [{name: x}]}, `
	agentStart = `
- {apiVersion: deckhand.dev/v1alpha1, kind: Model, metadata: {name: m}, spec: {provider: Anthropic, modelID: x, apiKeySecretRef: {name: k, key: k}}}
- {apiVersion: deckhand.dev/v1alpha1, kind: Agent, metadata: {name: a}, spec: {model: m, `
)

// fieldsWithExpressions has manifests by the fields of docs/reference/expressions.md, with NAME in
// place of what an expression reads. A field reads what it reads in any of its manifests.
var fieldsWithExpressions = map[string][]string{
	"Agent instructions":          {agentStart + `instructions: "${{ NAME }}"}}`},
	"Agent policy[].when":         {agentStart + `instructions: x, policy: [{name: p, when: "NAME == NAME", answer: Deny}]}}`},
	"Agent tools[].approval.when": {agentStart + `instructions: x, tools: [{builtin: Files, approval: {when: "NAME == NAME", approvers: {users: [u]}}}]}}`},
	"Agent routes[].when":         {agentStart + `instructions: x, routes: [{for: Turn, model: m, when: "NAME == NAME"}]}}`},
	"Run prompt":                  {agentsOfFields + "\n" + `- {apiVersion: deckhand.dev/v1alpha1, kind: Run, metadata: {name: r}, spec: {agent: a, prompt: "${{ NAME }}"}}`},
	"Toolset path":                {toolsetStart + `path: "/${{ NAME }}"}]}}}`},
	"Toolset query":               {toolsetStart + `path: /, query: {q: "${{ NAME }}"}}]}}}`},
	"Toolset body":                {toolsetStart + `path: /, body: {q: "${{ NAME }}"}}]}}}`},
	"Workflow nodes[].prompt":     prompts(`, NODE]}}`),
	"Workflow nodes[].input":      {workflowStart + `, {name: second, agent: a, forEach: {items: "[1]"}, input: {prompt: {cel: "NAME"}}}]}}`, workflowStart + `, {name: second, agent: a, loop: {until: "true"}, input: {prompt: {cel: "NAME"}}}]}}`},
	"Workflow nodes[].when":       {workflowStart + `, {name: second, agent: a, prompt: x, when: "NAME"}]}}`, workflowStart + `, {name: second, agent: a, prompt: x, forEach: {items: "[1]"}, when: "NAME"}]}}`, workflowStart + `, {name: second, agent: a, prompt: x, loop: {until: "true"}, when: "NAME"}]}}`},
	"Workflow output":             {workflowStart + `], output: {o: {cel: "NAME"}}}}`},
	"Workflow nodes[].loop.until": {workflowStart + `, {name: second, agent: a, prompt: x, loop: {until: "NAME"}}]}}`},
	"Workflow finally[].prompt":   prompts(`], finally: [NODE]}}`),
	"Workflow finally[].when":     {workflowStart + `], finally: [{name: second, agent: a, prompt: x, when: "NAME"}]}}`},
	"Workflow nodes[].forEach.items": {
		workflowStart + `, {name: second, agent: a, prompt: x, forEach: {items: "NAME"}}]}}`,
	},
	"Workflow nodes[].approval.message": {workflowStart + `, {name: second, approval: {message: "${{ NAME }}", approvers: {users: [u]}}}]}}`},
}

// prompts are Workflows with a node that has a prompt: a single one, of items and of a loop.
func prompts(end string) []string {
	var all []string
	for _, more := range []string{``, `, forEach: {items: "[1]"}`, `, loop: {until: "true"}`} {
		all = append(all, workflowStart+strings.Replace(end, "NODE", `{name: second, agent: a, prompt: "${{ NAME }}"`+more+`}`, 1))
	}
	return all
}

var (
	rowOfExpression = regexp.MustCompile(`(?m)^\| ((?:Agent|Run|Toolset|Workflow) .*?) \| (.*?) \| (.*?) \|$`)
	quotedOnPage    = regexp.MustCompile("`([^`]+)`")
	namesOnPage     = []string{"agent", "args", "budgetLeft", "estimatedTokens", "index", "input", "item", "iteration", "nodes", "previous", "run", "self", "shell", "tool", "turn"}
)

func TestExpressionsReadWhatThePageLists(t *testing.T) {
	page, err := os.ReadFile("../../../docs/reference/expressions.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := rowOfExpression.FindAllStringSubmatch(string(page), -1)
	listed := map[string]bool{}
	for _, row := range rows {
		var want []string
		for _, name := range quotedOnPage.FindAllStringSubmatch(row[3], -1) {
			if slices.Contains(namesOnPage, name[1]) {
				want = append(want, name[1])
			}
		}
		slices.Sort(want)
		for _, field := range fieldsOfRow(row[1]) {
			listed[field] = true
			manifests, ok := fieldsWithExpressions[field]
			if !ok {
				t.Errorf("no manifest has the field %s", field)
				continue
			}
			if diff := gocmp.Diff(want, readIn(t, field, manifests)); diff != "" {
				t.Errorf("%s reads other names than the page lists: -page +code\n%s", field, diff)
			}
		}
	}
	for _, of := range []string{"prompt", "when"} { // the page says that they are alike
		listed["Workflow finally[]."+of] = true
		diff := gocmp.Diff(readIn(t, of, fieldsWithExpressions["Workflow nodes[]."+of]), readIn(t, of, fieldsWithExpressions["Workflow finally[]."+of]))
		if diff != "" {
			t.Errorf("%s of nodes and finally reads other names: -nodes +finally\n%s", of, diff)
		}
	}
	if diff := gocmp.Diff(slices.Sorted(maps.Keys(fieldsWithExpressions)), slices.Sorted(maps.Keys(listed))); diff != "" {
		t.Errorf("fields of the test and of the page: -test +page\n%s", diff)
	}
}

// fieldsOfRow returns the fields in the first cell of a row, each with its kind.
func fieldsOfRow(cell string) []string {
	var all []string
	kind := ""
	for part := range strings.SplitSeq(cell, ", ") {
		if first, _, found := strings.Cut(part, " "); found && first[0] != '`' {
			kind = first
		}
		for _, name := range quotedOnPage.FindAllStringSubmatch(part, -1) {
			if name[1] != "requests.tools[]" {
				all = append(all, kind+" "+name[1])
			}
		}
	}
	return all
}

// fieldsOfNames are what is read of names that conditions cannot read as a whole.
var fieldsOfNames = map[string]string{"agent": "agent.name", "run": "run.name", "budgetLeft": "budgetLeft.steps"}

// readIn returns the names that expressions of a field read in any of its manifests.
func readIn(t *testing.T, field string, manifests []string) []string {
	t.Helper()
	var all []string
	for _, name := range append([]string{"nobody"}, namesOnPage...) {
		reads := slices.ContainsFunc(manifests, func(manifest string) bool {
			text := "apiVersion: v1\nkind: List\nitems:" + strings.ReplaceAll(manifest, "NAME", cmp.Or(fieldsOfNames[name], name))
			return !regexp.MustCompile(`there is no ` + name + `\b|undeclared reference to '` + name + `'`).MatchString(lintText(t, "f.yaml", text))
		})
		if reads {
			all = append(all, name)
		}
	}
	if slices.Contains(all, "nobody") {
		t.Errorf("%s: an unknown name is not refused, so the manifest says nothing", field)
	}
	return all
}
