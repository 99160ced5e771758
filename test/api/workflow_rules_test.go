package api_test

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
)

const workflow = `{apiVersion: deckhand.dev/v1alpha1, kind: Workflow, metadata: {name: w}, spec: {nodes: [{name: a, agent: a, prompt: Do it.}]}}`

// nodes bends a Workflow to have these.
func nodes(flow ...string) string {
	return "spec: {nodes: [" + strings.Join(flow, ", ") + "]}"
}

// work is so many nodes that differ in their names.
func work(prefix string, n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("{name: %s%d, agent: a, prompt: x}", prefix, i))
	}
	return "[" + strings.Join(all, ", ") + "]"
}

// workflowCases are the rules of what a Workflow may be.
var workflowCases = map[string]ruleCase{
	"a Workflow of one node":                    {workflow, ``, ``},
	"a Workflow has nodes":                      {workflow, `spec: {nodes: []}`, "spec.nodes"},
	"it has at most 64":                         {workflow, `spec: {nodes: ` + work("n", 65) + `}`, "must have at most 64 items"},
	"it has 64":                                 {workflow, `spec: {nodes: ` + work("n", 50) + `, finally: ` + work("f", 14) + `}`, ``},
	"those of finally count":                    {workflow, `spec: {nodes: ` + work("n", 50) + `, finally: ` + work("f", 15) + `}`, "nodes and finally must have at most 64 nodes together: move some into another Workflow"},
	"finally has at most 16":                    {workflow, `spec: {finally: ` + work("f", 17) + `}`, "must have at most 16 items"},
	"names are their own":                       {workflow, nodes(`{name: a, agent: a, prompt: x}`, `{name: a, agent: b, prompt: x}`), "Duplicate value"},
	"in finally too":                            {workflow, `spec: {finally: [{name: a, agent: a, prompt: x}]}`, "a node of finally has the name of another node: give one of the two another name"},
	"finally asks nobody":                       {workflow, `spec: {finally: [{name: f, approval: {message: "Well?"}}]}`, "approval is not allowed in finally: remove approval"},
	"an order is one of two":                    {workflow, `spec: {order: Random}`, `supported values: "Graph", "Sequential"`},
	"a graph says what waits for what":          {workflow, `{spec: {order: Graph, nodes: [{name: a, agent: a, prompt: x}, {name: b, agent: a, prompt: x, dependsOn: [a]}]}}`, ``},
	"a sequence says it itself":                 {workflow, `{spec: {order: Sequential, nodes: [{name: a, agent: a, prompt: x}, {name: b, agent: a, prompt: x, dependsOn: [a]}]}}`, "dependsOn is not allowed with order: Sequential: remove dependsOn"},
	"a description is bounded":                  {workflow, `spec: {description: ` + strings.Repeat("d", 1025) + `}`, "spec.description"},
	"an output is an object":                    {workflow, `spec: {output: [1]}`, "spec.output"},
	"an output is free inside":                  {workflow, `spec: {output: {a: {cel: nodes.a.text}, b: [1, {c: true}]}}`, ``},
	"limits":                                    {workflow, `spec: {limits: {steps: 100, tokens: 1M, cost: 2USD, duration: 1h, pending: 20m, deadline: 24h}, finallyLimits: {tokens: 1k, duration: 1m}}`, ``},
	"a limit of steps is one":                   {workflow, `spec: {limits: {steps: 0}}`, "greater than or equal to 1"},
	"a limit of tokens is one":                  {workflow, `spec: {limits: {tokens: 0}}`, "greater than or equal to 1"},
	"a limit of money is one":                   {workflow, `spec: {limits: {cost: 2EUR}}`, "write 1.50USD"},
	"a cost is not zero":                        {workflow, `spec: {limits: {cost: 0USD}}`, "must be more than 0USD: write 0.50USD, or remove cost"},
	"a cost of finally is not zero":             {workflow, `spec: {finallyLimits: {cost: 0USD}}`, "must be more than 0USD: write 0.50USD, or remove cost"},
	"a duration is not zero":                    {workflow, `spec: {limits: {duration: 0s}}`, "must be at least 1s"},
	"a deadline is not zero":                    {workflow, `spec: {limits: {deadline: 0s}}`, "must be at least 1s"},
	"a deadline is for the whole":               {workflow, `spec: {finallyLimits: {deadline: 1h}}`, `unknown field "spec.finallyLimits.deadline"`},
	"an unknown field of a Workflow is refused": {workflow, `spec: {parallel: 3}`, `unknown field "spec.parallel"`},

	"a field has a name":               {workflow, `spec: {input: {fields: [{type: String}]}}`, "spec.input.fields[0].name: Required"},
	"its name can be read":             {workflow, `spec: {input: {fields: [{name: my-file}]}}`, "must be a name that expressions can read: letters, digits and _"},
	"its name does not begin with one": {workflow, `spec: {input: {fields: [{name: 1st}]}}`, "must be a name that expressions can read"},
	"its name is its own":              {workflow, `spec: {input: {fields: [{name: a}, {name: a}]}}`, "Duplicate value"},
	"its type is one of six":           {workflow, `spec: {input: {fields: [{name: a, type: Date}]}}`, `supported values: "String", "Integer", "Number", "Boolean", "List", "Object"`},
	"a schema says the type":           {workflow, `spec: {input: {fields: [{name: a, type: List, schema: {type: array}}]}}`, "schema and type are not allowed together: remove type, because a schema includes the type"},
	"a schema is enough":               {workflow, `spec: {input: {fields: [{name: a, schema: {type: array, items: {type: string}}, default: [x]}]}}`, ``},
	"a default is any value":           {workflow, `spec: {input: {fields: [{name: a, default: ""}, {name: b, type: Integer, default: 0}, {name: c, type: Boolean, default: false}]}}`, ``},
	"fields are at most 32":            {workflow, `spec: {input: {fields: [` + strings.Repeat("{name: a}, ", 33) + `]}}`, "must have at most 32 items"},
	"a Run of a workflow has input":    {run, `spec: {agent: null, prompt: null, workflow: w, input: {a: 1}}`, ``},
}

// nodeCases are the rules of what a node may be.
var nodeCases = map[string]ruleCase{
	"a node of an agent":                     {workflow, nodes(`{name: a, agent: a, prompt: x, when: "true", onFailure: Continue, maxRetries: 0, limits: {steps: 3}}`), ``},
	"a node of a workflow":                   {workflow, nodes(`{name: a, workflow: v, input: {x: 1}, limits: {tokens: 1k}}`), ``},
	"a node of a workflow without values":    {workflow, nodes(`{name: a, workflow: v}`), ``},
	"a node of an approval":                  {workflow, nodes(`{name: a, approval: {message: "May I?", approvers: {groups: [g]}, expiresAfter: 1h, input: {schema: {type: object}}}}`), ``},
	"a node is something":                    {workflow, nodes(`{name: a, prompt: x}`), "exactly one of agent, workflow and approval is required: write agent: reviewer"},
	"a node is one thing":                    {workflow, nodes(`{name: a, agent: a, workflow: v, input: {}}`), "exactly one of agent, workflow and approval is required: remove the others"},
	"a node has a name":                      {workflow, nodes(`{agent: a, prompt: x}`), "spec.nodes[0].name: Required"},
	"its name is one":                        {workflow, nodes(`{name: 2nd, agent: a, prompt: x}`), "must begin with a letter and be lower-case letters, digits and -"},
	"its name does not end with -":           {workflow, nodes(`{name: a-, agent: a, prompt: x}`), "must begin with a letter"},
	"its name has no _":                      {workflow, nodes(`{name: a_b, agent: a, prompt: x}`), "must begin with a letter"},
	"its name is bounded":                    {workflow, nodes(`{name: ` + strings.Repeat("n", 41) + `, agent: a, prompt: x}`), "spec.nodes[0].name"},
	"an agent is the name of an object":      {workflow, nodes(`{name: a, agent: My_Agent, prompt: x}`), "must be the name of an object"},
	"a workflow is the name of an object":    {workflow, nodes(`{name: a, workflow: My_Flow}`), "must be the name of an object"},
	"an agent is told what to do":            {workflow, nodes(`{name: a, agent: a}`), "prompt or input is required for an agent: write prompt, or input as the Agent declares it"},
	"input is enough":                        {workflow, nodes(`{name: a, agent: a, input: {path: {cel: input.path}}}`), ``},
	"input is an object":                     {workflow, nodes(`{name: a, agent: a, input: [1]}`), "spec.nodes[0].input"},
	"a prompt says something":                {workflow, nodes(`{name: a, agent: a, prompt: ""}`), "spec.nodes[0].prompt"},
	"a prompt of a node is bounded in bytes": {workflow, nodes(`{name: a, agent: a, prompt: "` + strings.Repeat("ä", 32769) + `"}`), "must be at most 64 KiB"},
	"a workflow has no prompt":               {workflow, nodes(`{name: a, workflow: v, prompt: x}`), "prompt, maxRetries and workspace are not allowed for a workflow: remove them, and write input"},
	"a workflow has no retries":              {workflow, nodes(`{name: a, workflow: v, maxRetries: 1}`), "not allowed for a workflow: remove"},
	"a workflow has no workspace":            {workflow, nodes(`{name: a, workflow: v, workspace: {from: b}}`), "not allowed for a workflow: remove"},
	"an expression is bounded":               {workflow, nodes(`{name: a, agent: a, prompt: x, when: ` + strings.Repeat("x", 4097) + `}`), "spec.nodes[0].when"},
	"an expression says something":           {workflow, nodes(`{name: a, agent: a, prompt: x, when: ""}`), "spec.nodes[0].when"},
	"a failure is followed by one of two":    {workflow, nodes(`{name: a, agent: a, prompt: x, onFailure: Cry}`), `supported values: "Fail", "Continue"`},
	"retries of a node are bounded":          {workflow, nodes(`{name: a, agent: a, prompt: x, maxRetries: 21}`), "less than or equal to 20"},
	"a cost of a node is not zero":           {workflow, nodes(`{name: a, agent: a, prompt: x, limits: {cost: 0.0USD}}`), "must be more than 0USD: write 0.50USD, or remove cost"},
	"a node does not say when to ask":        {workflow, nodes(`{name: a, agent: a, prompt: x, limits: {whenReached: Ask}}`), `unknown field "spec.nodes[0].limits.whenReached"`},
	"dependsOn names each once":              {workflow, nodes(`{name: a, agent: a, prompt: x, dependsOn: [b, b]}`), "Duplicate value"},

	"for each item":                      {workflow, nodes(`{name: a, agent: a, prompt: x, forEach: {items: input.files, maxParallel: 500}}`), ``},
	"for each item of what":              {workflow, nodes(`{name: a, agent: a, prompt: x, forEach: {maxParallel: 3}}`), "forEach.items: Required"},
	"items at once are at most 500":      {workflow, nodes(`{name: a, agent: a, prompt: x, forEach: {items: "[1]", maxParallel: 501}}`), "less than or equal to 500"},
	"items at once are some":             {workflow, nodes(`{name: a, agent: a, prompt: x, forEach: {items: "[1]", maxParallel: 0}}`), "greater than or equal to 1"},
	"a loop":                             {workflow, nodes(`{name: a, agent: a, prompt: x, loop: {until: self.output.good, maxIterations: 100}}`), ``},
	"a loop until what":                  {workflow, nodes(`{name: a, agent: a, prompt: x, loop: {}}`), "loop.until: Required"},
	"iterations are at most 100":         {workflow, nodes(`{name: a, agent: a, prompt: x, loop: {until: "true", maxIterations: 101}}`), "less than or equal to 100"},
	"iterations are some":                {workflow, nodes(`{name: a, agent: a, prompt: x, loop: {until: "true", maxIterations: 0}}`), "greater than or equal to 1"},
	"a loop of items is two Workflows":   {workflow, nodes(`{name: a, agent: a, prompt: x, forEach: {items: "[1]"}, loop: {until: "true"}}`), "forEach and loop are not allowed together: move the loop into another Workflow, and name that in workflow"},
	"a workspace of another node":        {workflow, nodes(`{name: a, agent: a, prompt: x, workspace: {from: b}, loop: {until: "true"}}`), ``},
	"a workspace is that of somebody":    {workflow, nodes(`{name: a, agent: a, prompt: x, workspace: {}}`), "workspace.from: Required"},
	"items do not share a workspace":     {workflow, nodes(`{name: a, agent: a, prompt: x, workspace: {from: b}, forEach: {items: "[1]"}}`), "workspace and forEach are not allowed together, because items run in parallel: remove one of the two"},
	"an approval asks something":         {workflow, nodes(`{name: a, approval: {}}`), "approval.message: Required"},
	"an approval says something":         {workflow, nodes(`{name: a, approval: {message: ""}}`), "approval.message"},
	"its message is bounded in bytes":    {workflow, nodes(`{name: a, approval: {message: "` + strings.Repeat("ä", 2049) + `"}}`), "must be at most 4 KiB"},
	"it may wait":                        {workflow, nodes(`{name: a, approval: {message: x, expiresAfter: 720h}, when: "true", onFailure: Continue}`), ``},
	"it does not expire at once":         {workflow, nodes(`{name: a, approval: {message: x, expiresAfter: 0s}}`), "must be at least 1s and at most 720h"},
	"it does not wait for ever":          {workflow, nodes(`{name: a, approval: {message: x, expiresAfter: 721h}}`), "must be at least 1s and at most 720h"},
	"it is for at most 8 groups":         {workflow, nodes(`{name: a, approval: {message: x, approvers: {groups: [a, b, c, d, e, f, g, h, i]}}}`), "must have at most 8 items"},
	"it may be for a user":               {workflow, nodes(`{name: a, approval: {message: x, approvers: {users: [ann]}}}`), ``},
	"or for nobody":                      {workflow, nodes(`{name: a, approval: {message: x, approvers: {}}}`), "approvers is empty"},
	"its groups have names":              {workflow, nodes(`{name: a, approval: {message: x, approvers: {groups: [""]}}}`), "approval.approvers.groups[0]"},
	"its input has a schema or fields":   {workflow, nodes(`{name: a, approval: {message: x, input: {}}}`), "exactly one of schema and fields is required"},
	"an approval has no prompt":          {workflow, nodes(`{name: a, approval: {message: x}, prompt: x}`), "prompt, input, forEach, loop, limits, maxRetries and workspace are not allowed for an approval: remove them"},
	"an approval has no input of a node": {workflow, nodes(`{name: a, approval: {message: x}, input: {}}`), "prompt, input, forEach, loop, limits, maxRetries and workspace are not allowed for an approval: remove them"},
	"an approval has no items":           {workflow, nodes(`{name: a, approval: {message: x}, forEach: {items: "[1]"}}`), "prompt, input, forEach, loop, limits, maxRetries and workspace are not allowed for an approval: remove them"},
	"an approval has no loop":            {workflow, nodes(`{name: a, approval: {message: x}, loop: {until: "true"}}`), "prompt, input, forEach, loop, limits, maxRetries and workspace are not allowed for an approval: remove them"},
	"an approval has no limits":          {workflow, nodes(`{name: a, approval: {message: x}, limits: {steps: 1}}`), "prompt, input, forEach, loop, limits, maxRetries and workspace are not allowed for an approval: remove them"},
	"an approval has no retries":         {workflow, nodes(`{name: a, approval: {message: x}, maxRetries: 1}`), "prompt, input, forEach, loop, limits, maxRetries and workspace are not allowed for an approval: remove them"},
	"an approval has no workspace":       {workflow, nodes(`{name: a, approval: {message: x}, workspace: {from: b}}`), "prompt, input, forEach, loop, limits, maxRetries and workspace are not allowed for an approval: remove them"},
	"an approval is neither agent":       {workflow, nodes(`{name: a, approval: {message: x}, agent: a}`), "exactly one of agent, workflow and approval is required: remove the others"},
	"an unknown field of a node is told": {workflow, nodes(`{name: a, agent: a, prompt: x, depends: [b]}`), `unknown field "spec.nodes[0].depends"`},
}

func TestRulesOfWorkflows(t *testing.T) { holds(t, workflowCases) }
func TestRulesOfNodes(t *testing.T)     { holds(t, nodeCases) }

// What a Workflow does not say is filled in where people can see it.
func TestDefaultsOfAWorkflow(t *testing.T) {
	s := apitest.Get(t)
	o := object(t, workflow, nodes(
		`{name: a, agent: a, prompt: x, forEach: {items: "[1]"}}`, `{name: b, agent: a, prompt: x, loop: {until: "true"}}`, `{name: c, approval: {message: x}}`))
	o.SetNamespace(s.Namespace(t))
	s.Create(t, o)
	if order, _, _ := unstructured.NestedString(o.Object, "spec", "order"); order != "Graph" {
		t.Errorf("the order is %q", order)
	}
	flow, _, _ := unstructured.NestedSlice(o.Object, "spec", "nodes")
	got := fmt.Sprint(flow)
	for _, lacks := range []string{"maxParallel", "maxIterations", "session", "onFailure", "expiresAfter"} {
		if strings.Contains(got, lacks) {
			t.Errorf("nodes are %s: a default within a list makes every apply change something", got)
		}
	}
	if status := fmt.Sprint(o.Object["status"]); !strings.Contains(status, "Waiting for the operator") {
		t.Errorf("status is %s", status)
	}
}
