package api_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
)

const (
	model = `{apiVersion: deckhand.dev/v1alpha1, kind: Model, metadata: {name: m}, spec: {provider: OpenAI, modelID: gpt-5}}`
	agent = `{apiVersion: deckhand.dev/v1alpha1, kind: Agent, metadata: {name: a}, spec: {instructions: Do it., model: m}}`
	run   = `{apiVersion: deckhand.dev/v1alpha1, kind: Run, metadata: {name: r}, spec: {agent: a, prompt: Do it.}}`

	// The server knows tests by the name admin, and a policy wants it there.
	decision = `{apiVersion: deckhand.dev/v1alpha1, kind: Decision, metadata: {name: r.s3c1}, spec: {run: r, request: s3c1, type: Answer, value: main, by: admin}}`
)

// A rule case is a good object, what bends it, and what the server says then;
// empty: it takes it.
type ruleCase struct {
	base string
	bend string // YAML merged over the base
	want string
}

var ruleCases = map[string]ruleCase{
	"a Model of OpenAI needs no endpoint":         {model, ``, ``},
	"a compatible Model needs an endpoint":        {model, `spec: {provider: OpenAICompatible}`, "write endpoint: https://host/v1"},
	"an endpoint is a URL":                        {model, `spec: {endpoint: "models.example"}`, "write https://host/v1"},
	"an endpoint speaks HTTP":                     {model, `spec: {endpoint: "ftp://models.example"}`, "write https://host/v1"},
	"a provider is one of the list":               {model, `spec: {provider: Acme}`, `supported values: "OpenAI", "OpenAICompatible", "Anthropic"`},
	"a Model has a name":                          {model, `spec: {modelID: ""}`, "spec.modelID"},
	"credentials stand in a Secret, not a header": {model, `spec: {headers: [{name: Authorization, value: x}]}`, "name the Secret in apiKeySecretRef"},
	"a header is one line":                        {model, `spec: {headers: [{name: X-A, value: "a\nb"}]}`, "must be one line"},
	"money names its currency":                    {model, `spec: {prices: {input: "3", output: 15USD}}`, "must be an amount in US dollars: write 3USD"},
	"money is no number":                          {model, `spec: {prices: {input: 3, output: 15USD}}`, `must be of type string: "integer"`},
	"money is not negative":                       {model, `spec: {prices: {input: "-3USD", output: 15USD}}`, "write 1.50USD"},
	"money may be exact":                          {model, `spec: {prices: {input: 0.000001USD, output: 15USD}}`, ``},
	"tokens may be a number":                      {model, `spec: {contextWindow: 200000}`, ``},
	"tokens may have a suffix":                    {model, `spec: {contextWindow: 200k}`, ``},
	"tokens are positive":                         {model, `spec: {contextWindow: -1}`, "greater than or equal to 1"},
	"tokens are no quantity":                      {model, `spec: {contextWindow: 2Mi}`, "should match"},
	"temperature is a number":                     {model, `spec: {inference: {temperature: 0.2}}`, ``},
	"temperature is bounded":                      {model, `spec: {inference: {temperature: 2.5}}`, "less than or equal to 2"},
	"extra inference is free":                     {model, `spec: {inference: {extra: {thinking: {type: enabled}}}}`, ``},

	"a Model may take a day":                     {model, `spec: {timeouts: {firstByte: 24h, betweenBytes: 1s, total: 24h}}`, ``},
	"one timeout is enough":                      {model, `spec: {timeouts: {total: 10m}}`, ``},
	"a first byte is due within a day":           {model, `spec: {timeouts: {firstByte: 25h}}`, "must be at least 1s and at most 24h: write 30m, or remove it"},
	"a timeout is not zero":                      {model, `spec: {timeouts: {betweenBytes: 0s}}`, "must be at least 1s and at most 24h: write 5m, or remove it"},
	"an answer is due within a day":              {model, `spec: {timeouts: {total: 48h}}`, "must be at least 1s and at most 24h: write 3h, or remove it"},
	"a timeout has a unit":                       {model, `spec: {timeouts: {firstByte: 90, total: 3h}}`, `must be of type string: "integer"`},
	"an answer takes longer than its first byte": {model, `spec: {timeouts: {firstByte: 2h, total: 1h}}`, "total must not be shorter than firstByte: raise total, or remove it"},

	"an Agent has defaults for the rest":         {agent, ``, ``},
	"instructions are not empty":                 {agent, `spec: {instructions: ""}`, "spec.instructions"},
	"instructions are bounded in bytes":          {agent, `spec: {instructions: "` + strings.Repeat("ä", 40000) + `"}`, "must be at most 64 KiB: move long texts into files of the workspace"},
	"a tool is one of the list":                  {agent, `spec: {tools: [{builtin: Teleport}]}`, `Unsupported value: "Teleport"`},
	"a tool is listed once":                      {agent, `spec: {tools: [{builtin: Files}, {builtin: Files}]}`, "must not contain two tools with the same name: remove one of the two Files, or give"},
	"a tool's timeout is at most 6h":             {agent, `spec: {tools: [{builtin: Files, timeout: 7h}]}`, "at most 6h"},
	"a tool's timeout is not zero":               {agent, `spec: {tools: [{builtin: Files, timeout: 0s}]}`, "more than 0s"},
	"steps are positive":                         {agent, `spec: {limits: {steps: -1}}`, "greater than or equal to 1"},
	"tokens of a limit are positive":             {agent, `spec: {limits: {tokens: 0}}`, "greater than or equal to 1"},
	"a cost is money":                            {agent, `spec: {limits: {cost: 2}}`, "spec.limits.cost in body must be of type string"},
	"a cost is not below the smallest":           {agent, `spec: {limits: {cost: 0.0000001USD}}`, "must be an amount in US dollars of at most 999999.999999USD, in steps of 0.000001USD"},
	"a cost is not above the largest":            {agent, `spec: {limits: {cost: 1000000USD}}`, "must be an amount in US dollars of at most 999999.999999USD, in steps of 0.000001USD"},
	"a cost is not zero":                         {agent, `spec: {limits: {cost: 0USD}}`, "must be more than 0USD: write 0.50USD, or remove cost"},
	"a cost is not zero in any spelling":         {agent, `spec: {limits: {cost: 00.000USD}}`, "must be more than 0USD"},
	"a cost may be tiny":                         {agent, `spec: {limits: {cost: 0.000001USD}}`, ``},
	"a cost may be a round amount":               {agent, `spec: {limits: {cost: 10USD}}`, ``},
	"a price may be zero":                        {model, `spec: {prices: {input: 0USD, output: 0.00USD}}`, ``},
	"steps are not zero":                         {agent, `spec: {limits: {steps: 0}}`, "greater than or equal to 1"},
	"model calls are not zero":                   {agent, `spec: {limits: {modelCalls: 0}}`, "greater than or equal to 1"},
	"tool calls are not zero":                    {agent, `spec: {limits: {toolCalls: 0}}`, "greater than or equal to 1"},
	"tokens are not zero as a string":            {agent, `spec: {limits: {tokens: "0"}}`, "should match"},
	"tokens are not zero thousands":              {agent, `spec: {limits: {tokens: 0k}}`, "should match"},
	"a wait is not zero":                         {agent, `spec: {limits: {wait: 0h0m0s}}`, "at least 1s"},
	"no depth is one":                            {agent, `spec: {limits: {depth: 0}}`, ``},
	"concurrency is not zero":                    {agent, `spec: {concurrency: 0}`, "greater than or equal to 1"},
	"a duration is written short":                {agent, `spec: {limits: {duration: 10 minutes}}`, "must be a duration of at most 720h: write 48h, 1h30m or 90s"},
	"a duration has a unit":                      {agent, `spec: {limits: {duration: "90"}}`, "must be a duration of at most 720h: write 90s, or 10m for ten minutes"},
	"a duration is not negative":                 {agent, `spec: {limits: {duration: "-5m"}}`, "write 48h, 1h30m or 90s"},
	"a duration is not zero":                     {agent, `spec: {limits: {duration: 0s}}`, "at least 1s"},
	"a pending limit is not zero":                {agent, `spec: {limits: {pending: 0s}}`, "at least 1s"},
	"a deadline is not zero":                     {agent, `spec: {limits: {deadline: 0s}}`, "at least 1s"},
	"a duration is at most 30 days":              {agent, `spec: {limits: {duration: 721h}}`, "at most 720h"},
	"parallel tools are bounded":                 {agent, `spec: {parallelTools: 33}`, "less than or equal to 32"},
	"a workspace has room":                       {agent, `spec: {workspace: {size: 1Mi}}`, "at least 16Mi"},
	"a workspace's size is a quantity":           {agent, `spec: {workspace: {size: lots}}`, "must be a size with a unit: write 10Gi"},
	"a workspace's size is no number":            {agent, `spec: {workspace: {size: 20}}`, "must be a size with a unit: write 20Gi"},
	"a workspace's size has units of Kubernetes": {agent, `spec: {workspace: {size: 5GB}}`, "must be a size with a unit: write 5Gi"},
	"a workspace's size may be decimal":          {agent, `spec: {workspace: {size: 20G}}`, ""},
	"durability is one of the list":              {agent, `spec: {workspace: {durability: Forever}}`, `supported values: "Pod"`},
	"an output is not empty":                     {agent, `spec: {output: {}}`, "must have schema or files: write files: [report.md], or remove output"},
	"an output may have only files":              {agent, `spec: {output: {files: [report.md, out/**/*.csv]}}`, ``},
	"files are in the workspace":                 {agent, `spec: {output: {files: [out/../../x]}}`, "must be patterns of files in the workspace"},
	"files are named once":                       {agent, `spec: {output: {files: [a, a]}}`, "Duplicate value"},

	"a Run of an agent":                           {run, ``, ``},
	"a Run names an agent or a workflow":          {run, `spec: {agent: null}`, "exactly one of agent and workflow is required: write agent: reviewer"},
	"a Run names not both":                        {run, `spec: {workflow: w}`, "exactly one of agent and workflow is required: remove one of the two"},
	"a Run of a workflow":                         {run, `spec: {agent: null, prompt: null, workflow: w}`, ``},
	"a Run of a workflow with input":              {run, `spec: {agent: null, prompt: null, workflow: w, input: {a: 1}, limits: {steps: 9, tokens: 1k, pending: 1m}}`, ``},
	"a workflow has no prompt":                    {run, `spec: {agent: null, workflow: w}`, "prompt is not allowed for a workflow: remove prompt, and write input as the Workflow declares it"},
	"a workflow has no retries":                   {run, `spec: {agent: null, prompt: null, workflow: w, maxRetries: 2}`, "maxRetries and maxDisruptions are not allowed for a workflow: set maxRetries of the nodes of the Workflow"},
	"a workflow may have the former defaults":     {run, `spec: {agent: null, prompt: null, workflow: w, maxRetries: 1, maxDisruptions: 10}`, ``},
	"a workflow has no disruptions":               {run, `spec: {agent: null, prompt: null, workflow: w, maxDisruptions: 2}`, "maxRetries and maxDisruptions are not allowed for a workflow: set maxRetries of the nodes of the Workflow"},
	"a workflow limits what it counts":            {run, `spec: {agent: null, prompt: null, workflow: w, limits: {toolCalls: 3}}`, "limits.modelCalls, toolCalls, depth, wait and modelOutage are not allowed for a workflow: remove them, or set them in the Agents"},
	"a workflow waits for no model itself":        {run, `spec: {agent: null, prompt: null, workflow: w, limits: {modelOutage: 1h}}`, "limits.modelCalls, toolCalls, depth, wait and modelOutage are not allowed for a workflow"},
	"a Run names an Agent as it may be called":    {run, `spec: {agent: Fast_X}`, "must be the name of an object"},
	"a Run names a Workflow as it may be called":  {run, `spec: {agent: null, workflow: Fast_X}`, "must be the name of an object"},
	"an Agent names a Model as it may be called":  {agent, `spec: {model: GPT}`, "must be the name of an object"},
	"a Model names a Secret as it may be called":  {model, `spec: {apiKeySecretRef: {name: My_Key, key: k}}`, "must be the name of an object"},
	"a Run shows files":                           {run, `spec: {images: [docs/chart.png, .hidden/..a.pdf]}`, ``},
	"a workflow shows no files":                   {run, `spec: {agent: null, prompt: null, workflow: w, images: [a.png]}`, "images is not allowed for a workflow: remove images"},
	"a file of a Run is below the workspace":      {run, `spec: {images: [/workspace/chart.png]}`, "must be a file below /workspace: write docs/chart.png"},
	"a file of a Run does not leave it":           {run, `spec: {images: [docs/../../chart.png]}`, "must be a file below /workspace: write docs/chart.png"},
	"a file of a Run is one line":                 {run, `spec: {images: ["docs/\n.png"]}`, "must be a file below /workspace: write docs/chart.png"},
	"a file of a Run is shown once":               {run, `spec: {images: [a.png, a.png]}`, "Duplicate value"},
	"a prompt is there":                           {run, `spec: {prompt: null}`, "prompt or input is required for an agent: write prompt, or input as the Agent declares it"},
	"a prompt is not empty":                       {run, `spec: {prompt: ""}`, "spec.prompt"},
	"a prompt says something":                     {run, `spec: {prompt: "  \n"}`, "must not be blank"},
	"a prompt is bounded":                         {run, `spec: {prompt: "` + strings.Repeat("a", 65537) + `"}`, "65536"},
	"a prompt is bounded in bytes":                {run, `spec: {prompt: "` + strings.Repeat("ä", 40000) + `"}`, "must be at most 64 KiB: move long texts into files of the workspace"},
	"a continuation needs no prompt":              {run, `spec: {prompt: null, continueFrom: {run: first}}`, ``},
	"a continuation names a Run":                  {run, `spec: {continueFrom: {step: 3}}`, "spec.continueFrom.run: Required value"},
	"it names it as Runs are called":              {run, `spec: {continueFrom: {run: fix.1}}`, "must be the name of a Run: lower-case letters, digits and -"},
	"it may name its UID":                         {run, `spec: {continueFrom: {run: first, uid: 3fa85f64-5717-4562-b3fc-2c963f66afa6}}`, ``},
	"a UID is one":                                {run, `spec: {continueFrom: {run: first, uid: first}}`, "must be the UID of a Run, as kubectl get run NAME -o jsonpath='{.metadata.uid}' prints it"},
	"a Run does not continue itself":              {run, `spec: {continueFrom: {run: r}}`, "spec.continueFrom.run is the Run itself: name the Run to continue"},
	"steps begin with 1":                          {run, `spec: {continueFrom: {run: first, step: 0}}`, "greater than or equal to 1"},
	"files are copied or fresh":                   {run, `spec: {continueFrom: {run: first, workspace: Clone}}`, `supported values: "Copy", "Share", "Fresh"`},
	"a workflow is retried":                       {run, `spec: {agent: null, prompt: null, workflow: w, continueFrom: {run: first}}`, ``},
	"a workflow is retried from a node":           {run, `spec: {agent: null, prompt: null, workflow: w, continueFrom: {run: first, node: build}}`, ``},
	"an agent has no nodes":                       {run, `spec: {continueFrom: {run: first, node: build}}`, "continueFrom.node is only for a workflow, and step and workspace: Share or Fresh are only for an agent: remove the others"},
	"a workflow has no steps":                     {run, `spec: {agent: null, prompt: null, workflow: w, continueFrom: {run: first, step: 3}}`, "continueFrom.node is only for a workflow"},
	"a continuation shares files":                 {run, `spec: {continueFrom: {run: first, step: 3, workspace: Share}}`, ``},
	"a workflow shares no files":                  {run, `spec: {agent: null, prompt: null, workflow: w, continueFrom: {run: first, workspace: Share}}`, "continueFrom.node is only for a workflow"},
	"a workflow has no files":                     {run, `spec: {agent: null, prompt: null, workflow: w, continueFrom: {run: first, workspace: Fresh}}`, "continueFrom.node is only for a workflow"},
	"a node has a name":                           {run, `spec: {agent: null, prompt: null, workflow: w, continueFrom: {run: first, node: ""}}`, "should be at least 1 chars long"},
	"a retry has no prompt":                       {run, `spec: {agent: null, workflow: w, continueFrom: {run: first}}`, "prompt is not allowed for a workflow"},
	"retries are bounded":                         {run, `spec: {maxRetries: 21}`, "less than or equal to 20"},
	"retries are not negative":                    {run, `spec: {maxRetries: -1}`, "greater than or equal to 0"},
	"disruptions are not negative":                {run, `spec: {maxDisruptions: -1}`, "greater than or equal to 0"},
	"a desired state is one of the list":          {run, `spec: {desiredState: Dancing}`, `supported values: "Running", "Paused", "Stopped"`},
	"a TTL is not negative":                       {run, `spec: {ttlSecondsAfterFinished: -1}`, "greater than or equal to 0"},
	"a name fits a label":                         {run, `metadata: {name: ` + strings.Repeat("r", 64) + `}`, "at most 63 lower-case letters"},
	"a name has no dots":                          {run, `metadata: {name: r.s3c1}`, "at most 63 lower-case letters, digits and -"},
	"an unknown field is refused by name":         {run, `spec: {promt: Do it.}`, `unknown field "spec.promt"`},
	"a cost of a Run is not zero":                 {run, `spec: {limits: {cost: 0USD}}`, "must be more than 0USD: write 0.50USD, or remove cost"},
	"a limit of a Run is checked like an Agent's": {run, `spec: {limits: {cost: 1EUR}}`, "write 1.50USD"},
}

// typeCases are values of another type, which the API server refuses before it evaluates a
// rule. docs/troubleshooting.md lists its words.
var typeCases = map[string]ruleCase{
	"a cost with a fraction":     {agent, `spec: {limits: {cost: 1.5}}`, `spec.limits.cost in body must be of type string: "number"`},
	"a price with a fraction":    {model, `spec: {prices: {input: 0.25, output: 15USD}}`, `spec.prices.input in body must be of type string: "number"`},
	"tokens with a fraction":     {agent, `spec: {limits: {tokens: 1.5}}`, `spec.limits.tokens in body must be of type integer,string: "number"`},
	"a duration with a fraction": {agent, `spec: {limits: {duration: 1.5}}`, `spec.limits.duration in body must be of type string: "number"`},
	"reasoning without quotes":   {agent, `spec: {inference: {reasoning: Off}}`, `spec.inference.reasoning in body must be of type string: "boolean"`},
	"a variable as a number":     {agent, `spec: {sandbox: {image: i, env: [{name: A, value: 1}]}}`, `spec.sandbox.env[0].value in body must be of type string: "integer"`},
	"a tool as a string":         {agent, `spec: {tools: [Shell]}`, `spec.tools[0] in body must be of type object: "string"`},
}

func TestValuesOfAnotherTypeAreRefusedAsThePageSays(t *testing.T) {
	holds(t, typeCases)
	page, err := os.ReadFile(filepath.Join(apitest.Root(), "docs", "troubleshooting.md"))
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range typeCases {
		if !strings.Contains(string(page), tc.want) {
			t.Errorf("%s: docs/troubleshooting.md does not list %s", name, tc.want)
		}
	}
}

func TestRules(t *testing.T) { holds(t, ruleCases) }

// holds creates what each case bends, on trial. Lint finds an error if the server does.
func holds(t *testing.T, cases map[string]ruleCase) {
	t.Helper()
	s := apitest.Get(t)
	namespace := s.Namespace(t)
	strict := client.WithFieldValidation(s.Admin, "Strict")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := object(t, tc.base, tc.bend)
			o.SetNamespace(namespace)
			found := lintErrors(t, manifestOf(t, o))
			err := strict.Create(t.Context(), o, client.DryRunAll)
			if (err != nil) != (len(found) > 0) {
				t.Errorf("the server says %v, and lint finds %q", err, found)
			}
			tc.check(t, err)
		})
	}
}

// check checks what the server says.
func (tc ruleCase) check(t *testing.T, err error) {
	t.Helper()
	if tc.want == "" {
		if err != nil {
			t.Errorf("refused: %v", err)
		}
		return
	}
	if err == nil || !strings.Contains(err.Error(), tc.want) {
		t.Errorf("the server says %v, want it to say %q", err, tc.want)
		return
	}
	for _, internal := range []string{"type conversion error", "no such overload", "rule could not be evaluated"} {
		if strings.Contains(err.Error(), internal) {
			t.Errorf("the server says %v, which no user can read: a rule fails to evaluate", err)
		}
	}
}

// object is base with bend merged over it; null removes.
func object(t *testing.T, base, bend string) *unstructured.Unstructured {
	t.Helper()
	var o, over map[string]any
	if err := yaml.Unmarshal([]byte(base), &o); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(bend), &over); err != nil {
		t.Fatal(err)
	}
	merge(o, over)
	return &unstructured.Unstructured{Object: o}
}

func merge(into, over map[string]any) {
	for k, v := range over {
		inner, isMap := v.(map[string]any)
		had, hasMap := into[k].(map[string]any)
		switch {
		case v == nil:
			delete(into, k)
		case isMap && hasMap:
			merge(had, inner)
		default:
			into[k] = v
		}
	}
}

// What a person did not say is filled in where they can see it.
func TestDefaults(t *testing.T) {
	s := apitest.Get(t)
	namespace := s.Namespace(t)
	for kind, tc := range map[string]struct{ base, want string }{
		"Model": {model, `{conditions: [{type: Ready, status: Unknown, reason: Pending, message: Waiting for the operator, lastTransitionTime: "1970-01-01T00:00:00Z"}]}`},
		"Run":   {run, `{conditions: [{type: Reconciling, status: "True", reason: Pending, message: Waiting for the operator, lastTransitionTime: "1970-01-01T00:00:00Z"}, {type: Succeeded, status: Unknown, reason: Pending, message: Waiting for the operator, lastTransitionTime: "1970-01-01T00:00:00Z"}]}`},
	} {
		t.Run(kind+" has a status from the first moment", func(t *testing.T) {
			o := object(t, tc.base, "")
			o.SetNamespace(namespace)
			s.Create(t, o)
			var want any
			if err := yaml.Unmarshal([]byte(tc.want), &want); err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(o.Object["status"]); got != fmt.Sprint(want) {
				t.Errorf("status is %s, want %s", got, fmt.Sprint(want))
			}
		})
	}
	for name, bend := range map[string]string{"of-an-agent": "", "of-a-workflow": `spec: {agent: null, prompt: null, workflow: w}`} {
		r := object(t, run, bend)
		r.SetNamespace(namespace)
		r.SetName(name)
		s.Create(t, r)
		spec, _, _ := unstructured.NestedMap(r.Object, "spec")
		if spec["maxRetries"] != nil || spec["maxDisruptions"] != nil {
			t.Errorf("defaults of a Run %s are %v", name, spec)
		}
	}
	a := object(t, agent, "")
	a.SetNamespace(namespace)
	s.Create(t, a)
	spec, _, _ := unstructured.NestedMap(a.Object, "spec")
	if got := fmt.Sprintln(spec["parallelTools"], spec["log"], spec["retention"], spec["workspace"]); got != "10 Full map[pod:1h] map[agentsFile:Auto size:1Gi]\n" {
		t.Errorf("defaults of an Agent are %s", got)
	}
}
