package workflow_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/workflow"
)

// review is the first node of many Workflows.
const review = "nodes:\n- {name: review, agent: reviewer, prompt: Review it.}\n"

// inner is a nested Workflow.
const inner = `
input: {fields: [{name: subject}, {name: words, type: Integer, default: 100}, {name: style, required: false}]}
nodes: [{name: judge, agent: reviewer, prompt: "Judge ${{ input.subject }}."}]
output: {score: {cel: nodes.judge.output.score}, all: {cel: nodes.judge.output}, by: judge, nested: {deep: [{cel: nodes.judge.text}]}}
`

func TestWhatIsReady(t *testing.T) {
	cases := map[string]string{
		"a node reads the output of another, with its type": review + `
- {name: fix, agent: talker, when: nodes.review.output.score > 3, prompt: "Fix ${{ nodes.review.output.files[0] }}."}`,
		"what may be absent is guarded": review + `
- {name: note, agent: talker, when: 'nodes.review.output.?note.hasValue()', prompt: "Note ${{ nodes.review.output.?note.orValue('nothing') }}."}
- {name: last, agent: talker, prompt: "${{ nodes.note.?text.orValue('no note') }}"}`,
		"a node may fail, and who reads it knows": `
nodes:
- {name: review, agent: reviewer, prompt: Review it., onFailure: Continue}
- {name: last, agent: talker, prompt: "${{ nodes.review.?output.?score.orValue(0) }} ${{ nodes.review.state }} ${{ nodes.review.counts.failed }}"}`,
		"a name with a dash has an underscore": `
nodes:
- {name: write-tests, agent: talker, prompt: Write.}
- {name: last, agent: talker, prompt: "${{ nodes.write_tests.text }}"}`,
		"items have the type of the list": review + `
- name: each
  agent: talker
  forEach: {items: nodes.review.output.files}
  prompt: "${{ index + 1 }}: ${{ item.upperAscii() }}"
- {name: last, agent: talker, prompt: "${{ nodes.each.text.join(', ') }} of ${{ nodes.each.counts.total }}"}`,
		"items of a node that may fail are optional, and so is the list": `
nodes:
- {name: each, agent: reviewer, prompt: "${{ item }}", forEach: {items: "[1, 2]"}, onFailure: Continue}
output: {sum: {cel: "nodes.each.?output.orValue([]).map(o, o.?score.orValue(0)).size()"}}`,
		"a loop reads the iteration before": `
nodes:
- name: polish
  agent: reviewer
  prompt: "${{ iteration }}: ${{ previous.?output.?note.orValue('first') }} ${{ previous.?text.orValue('') }}"
  loop: {until: self.output.score >= 8 && self.succeeded || iteration == 3}`,
		"finally reads how it ended, and all is optional": review + `
finally:
- {name: tell, agent: talker, prompt: "${{ run.reason }} ${{ run.message }} ${{ nodes.review.?output.?score.orValue(0) }} ${{ nodes.review.state }}"}
- {name: more, agent: talker, prompt: "${{ nodes.tell.?text.orValue('') }}"}`,
		"a Workflow gives its output, types of its nodes and literals included": `
nodes:
- {name: sub, workflow: inner, input: {subject: {cel: run.name}}}
- {name: last, agent: writer, when: nodes.sub.output.score > 3 && nodes.sub.output.by == 'judge', prompt: x, input: {topics: {cel: nodes.sub.output.all.files}, words: {cel: nodes.sub.output.all.score}}}`,
		"a Workflow is named twice": `
nodes:
- {name: one, workflow: inner, input: {subject: a}}
- {name: two, workflow: inner, input: {subject: b}}
output: {sum: {cel: nodes.one.output.score + nodes.two.output.score}}`,
		"a plan is approved, and what is said with that is read": `
nodes:
- {name: gate, approval: {message: "Go? ${{ run.name }}", input: {schema: {type: object, required: [where], properties: {where: {type: string}}}}}}
- {name: go, agent: talker, prompt: "Go ${{ nodes.gate.output.input.where }}, says ${{ nodes.gate.output.by }} at ${{ nodes.gate.output.at }}"}`,
		"who reads the verdict knows that nothing may be said with it": `
nodes:
- {name: gate, approval: {message: "Go?", input: {schema: {type: object, required: [where], properties: {where: {type: string}}}}}}
- {name: go, agent: talker, when: nodes.gate.output.approved, prompt: "Go ${{ nodes.gate.output.?input.?where.orValue('on') }}"}`,
		"an agent with an input and no prompt": `
nodes: [{name: write, agent: writer, input: {topics: [a, b], style: terse}}]`,
		"a value that may be absent, where it need not be given": `
input: {fields: [{name: style, required: false}]}
nodes: [{name: write, agent: writer, input: {topics: [a], style: {cel: "input.?style"}}}]`,
		"a prompt as a value, of an agent that takes no other": `
nodes: [{name: talk, agent: talker, input: {prompt: {cel: "'Hello, ' + run.name"}}}]`,
		"expressions within lists and objects": `
input: {fields: [{name: a}]}
nodes: [{name: write, agent: writer, input: {topics: [a, {cel: input.a}]}}]
output: {list: [1, {cel: "1 + 1"}], object: {inner: {cel: nodes.write.text}}}`,
		"a workspace goes from one to another": `
nodes:
- {name: build, agent: shipwright, prompt: Build.}
- {name: paint, agent: shipwright, prompt: Paint., workspace: {from: build}}
finally: [{name: launch, agent: shipwright, prompt: Launch., workspace: {from: paint}}]`,
		"one after the other": `
order: Sequential
nodes: [{name: b, agent: talker, prompt: x}, {name: a, agent: talker, prompt: "${{ nodes.b.text }}"}]
finally: [{name: d, agent: talker, prompt: x, dependsOn: [c]}, {name: c, agent: talker, prompt: x}]`,
		"input of all types": `
input:
  fields:
  - {name: s, type: String, default: x}
  - {name: i, type: Integer}
  - {name: num, type: Number, default: 1}
  - {name: b, type: Boolean}
  - {name: l, type: List, default: [1, x]}
  - {name: o, type: Object}
  - {name: t, schema: {type: array, items: {type: object, properties: {x: {type: integer}}}}}
nodes: [{name: a, agent: talker, when: "input.b && input.i > 1 && input.num < 2.5 && size(input.l) > 1 && input.t[0].?x.orValue(1) == 1", prompt: "${{ input.s }} ${{ input.o.anything }}"}]`,
		"cost is limited, and all have prices": "limits: {cost: 1USD}\n" + review,
	}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := of(t, text, map[string]string{"inner": inner}); err != nil {
				t.Errorf("Of: %s", problem(err))
			}
		})
	}
}

// Each message has the node, the field and, in an expression, the column, and says what
// to do.
func TestWhatIsNotReady(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"an Agent that is not there":              {"nodes: [{name: a, agent: nobody, prompt: x}]", `NotFound: node a: Agent "nobody" not found in namespace team-a; create it, or name another in spec.nodes[0].agent`},
		"an Agent that is not Ready":              {"nodes: [{name: a, agent: stranger, prompt: x}]", `NotReady: node a: Agent "stranger" is not ready: Model "nobody" not found`},
		"an Agent of finally that is not there":   {"nodes: [{name: a, workflow: inner, input: {topic: x}}]\nfinally: [{name: b, agent: nobody, prompt: x}]", `NotFound: node b: Agent "nobody" not found in namespace team-a; create it, or name another in spec.finally[0].agent`},
		"a Workflow that is not there":            {"nodes: [{name: a, workflow: nothing}]", `NotFound: node a: Workflow "nothing" not found in namespace team-a; create it, or name another in spec.nodes[0].workflow`},
		"a Workflow that is not Ready":            {"nodes: [{name: a, workflow: broken}]", `NotReady: node a: Workflow "broken" is not ready: node b: Agent "nobody" not found`},
		"a Workflow in itself":                    {"nodes: [{name: a, workflow: main}]", `Cycle: Workflow reference cycle: main -> main`},
		"Workflows in a circle":                   {"nodes: [{name: a, workflow: back}]", `Cycle: Workflow reference cycle: main -> back -> main`},
		"Workflows too deep":                      {"nodes: [{name: a, workflow: deep1}]", `TooLarge: Workflows are nested 6 deep: main -> deep1 -> deep2 -> deep3 -> deep4 -> deep5; the maximum is 5`},
		"a circle of waits":                       {"nodes: [{name: a, agent: talker, prompt: x, dependsOn: [c]}, {name: b, agent: talker, prompt: '${{ nodes.a.text }}'}, {name: c, agent: talker, when: nodes.b.state == 'Failed', prompt: x}]", `Invalid: The nodes wait for each other in a cycle: a (dependsOn) -> c (when) -> b (prompt) -> a`},
		"dependsOn of no node":                    {"nodes: [{name: a, agent: talker, prompt: x, dependsOn: [z]}, {name: b, agent: talker, prompt: x}]", `Invalid: node a: dependsOn names "z", which is no node; there are b`},
		"dependsOn of itself":                     {"nodes: [{name: a, agent: talker, prompt: x, dependsOn: [a]}]", `Invalid: node a: dependsOn names the node itself`},
		"dependsOn of a node of finally":          {"nodes: [{name: a, agent: talker, prompt: x, dependsOn: [f]}]\nfinally: [{name: f, agent: talker, prompt: x}]", `Invalid: node a: dependsOn names f, which is of finally`},
		"an unknown node":                         {review + "- {name: b, agent: talker, when: 'true && nodes.revew.state == \"x\"', prompt: x}", `Invalid: node b: when: column 15: there is no field revew; nodes has b, review; did you mean review?`},
		"an unknown node in a prompt":             {review + "- {name: b, agent: talker, prompt: 'a ${{ nodes.revew.text }}'}", `Invalid: node b: prompt: column 13: there is no field revew; nodes has b, review; did you mean review?`},
		"an unknown variable":                     {"nodes: [{name: a, agent: talker, prompt: 'x ${{ item }}'}]", `Invalid: node a: prompt: column 7: `},
		"an unknown field":                        {review + "- {name: b, agent: talker, when: nodes.review.output.scroe > 3, prompt: x}", `Invalid: node b: when: column 21: there is no field scroe; nodes.review.output has files, note, score; did you mean score?`},
		"a wrong type":                            {review + "- {name: b, agent: talker, when: nodes.review.output.score, prompt: x}", `Invalid: node b: when: column 1: `},
		"no expression at all":                    {review + "- {name: b, agent: talker, when: '1 +', prompt: x}", `Invalid: node b: when: column 4: `},
		"on the second line":                      {review + "- name: b\n  agent: talker\n  prompt: |\n    Hello\n    ${{ nodes.x.text }}", `Invalid: node b: prompt: line 2, column 11: there is no field x`},
		"a prompt that is not closed":             {"nodes: [{name: a, agent: talker, prompt: 'x ${{ run.name'}]", `Invalid: node a: prompt: column 3: `},
		"what may be absent, unguarded":           {"nodes: [{name: a, agent: reviewer, prompt: x, when: 'true'}, {name: b, agent: talker, when: nodes.a.output.score > 3, prompt: x}]", `Invalid: node b: when: column 1: nodes.a.output.score may be absent: write nodes.a.?output.?score.orValue(0)`},
		"what may have failed, unguarded":         {"nodes: [{name: a, agent: reviewer, prompt: x, onFailure: Continue}, {name: b, agent: talker, prompt: '${{ nodes.a.text }}'}]", `Invalid: node b: prompt: column 5: nodes.a.text may be absent: write nodes.a.?text.orValue('')`},
		"all in finally":                          {review + "finally: [{name: f, agent: talker, when: nodes.review.output.score > 3, prompt: x}]", `Invalid: node f: when: column 1: nodes.review.output.score may be absent`},
		"an output that is not there":             {"nodes: [{name: a, agent: talker, prompt: x}, {name: b, agent: talker, when: nodes.a.output.score > 3, prompt: x}]", `Invalid: node b: when: column 9: Agent "talker" has no output.schema, so node a has a text only: read nodes.a.text, or give the Agent an output.schema`},
		"the text of a Workflow":                  {"nodes: [{name: a, workflow: inner, input: {subject: x}}, {name: b, agent: talker, prompt: '${{ nodes.a.text }}'}]", `node a is a Workflow and has no text: read nodes.a.output`},
		"the output of a Workflow without":        {"nodes: [{name: a, workflow: silent}, {name: b, agent: talker, prompt: '${{ nodes.a.output }}'}]", `Workflow "silent" declares no output`},
		"the text of an approval":                 {"nodes: [{name: a, approval: {message: x}}, {name: b, agent: talker, prompt: '${{ nodes.a.text }}'}]", `node a is an approval and has no text: read nodes.a.output`},
		"a node of finally, from outside":         {"nodes: [{name: a, agent: talker, prompt: 'x ${{ nodes.f.text }}'}]\nfinally: [{name: f, agent: talker, prompt: x}]", `Invalid: node a: prompt: column 13: nodes.f is of finally`},
		"a node of finally in the output":         {"nodes: [{name: a, agent: talker, prompt: x}]\nfinally: [{name: f, agent: talker, prompt: x}]\noutput: {x: {cel: nodes.f.text}}", `Invalid: output.x: column 7: nodes.f is of finally`},
		"itself":                                  {"nodes: [{name: a, agent: talker, prompt: 'x ${{ nodes.a.text }}'}]", `Invalid: node a: prompt: column 13: nodes.a is this node itself`},
		"a later node, one after the other":       {"order: Sequential\nnodes: [{name: a, agent: talker, when: '1 < 2 && nodes.b.text == \"\"', prompt: x}, {name: b, agent: talker, prompt: x}]", `Invalid: node a: when: column 16: nodes.b comes later, and order is Sequential; list b before a`},
		"all nodes as one":                        {review + "output: {all: {cel: nodes}}", `Invalid: output.all: column 1: `},
		"how it ends, before":                     {"nodes: [{name: a, agent: talker, prompt: '${{ run.reason }}'}]", `Invalid: node a: prompt: column 9: there is no field reason; run has name, namespace, uid`},
		"items that are no list":                  {"nodes: [{name: a, agent: talker, prompt: x, forEach: {items: '1'}}]", `Invalid: node a: forEach.items: column 1: `},
		"items of another type in use":            {review + "- {name: b, agent: talker, prompt: '${{ item.name }}', forEach: {items: nodes.review.output.files}}", `Invalid: node b: prompt: column 5: `},
		"a loop without an end":                   {"nodes: [{name: a, agent: talker, prompt: x, loop: {until: self.text}}]", `Invalid: node a: loop.until: column 1: `},
		"the iteration before, unguarded":         {"nodes: [{name: a, agent: talker, prompt: '${{ previous.text }}', loop: {until: 'true'}}]", `Invalid: node a: prompt: column 5: previous.text may be absent`},
		"what is said with a verdict, unguarded":  {"nodes:\n- {name: gate, approval: {message: x, input: {schema: {type: object, required: [w], properties: {w: {type: string}}}}}}\n- {name: b, agent: talker, when: nodes.gate.output.approved, prompt: '${{ nodes.gate.output.input.w }}'}", `Invalid: node b: prompt: column 5: nodes.gate.output.input.w may be absent`},
		"more approvals than are kept":            {"nodes: [" + "{name: n0, approval: {message: x}}, " + manyApprovals(20) + "]", `Invalid: node n20: a Workflow has at most 20 approvals`},
		"a schema of an approval":                 {"nodes: [{name: a, approval: {message: x, input: {schema: {type: object, properties: {x: {oneOf: []}}}}}}]", `Invalid: node a: approval.input.schema: properties.x.oneOf is not supported`},
		"input lacks a value":                     {"nodes: [{name: a, agent: writer, prompt: x}]", `Invalid: node a: input lacks topics, which the input of Agent "writer" requires`},
		"input has another value":                 {"nodes: [{name: a, agent: writer, input: {topics: [a], color: red}}]", `Invalid: node a: input.color is not in the input of Agent "writer"; it has style, topics, words`},
		"input has a literal that does not fit":   {"nodes: [{name: a, agent: writer, input: {topics: [a], words: 3}}]", "Invalid: node a: input does not fit the input of Agent \"writer\": `words` must be at least 10; got 3"},
		"input has an expression of another type": {"nodes: [{name: a, agent: writer, input: {topics: [a], words: {cel: run.name}}}]", `Invalid: node a: input.words: column 1: this must be `},
		"input has one that may be absent":        {"input: {fields: [{name: t, required: false, schema: {type: array, items: {type: string}}}]}\nnodes: [{name: a, agent: writer, input: {topics: {cel: input.t}}}]", `Invalid: node a: input.topics: column 1: input.t may be absent: write input.?t.orValue([])`},
		"input has one that need not be given":    {"input: {fields: [{name: s, required: false}]}\nnodes: [{name: a, agent: writer, input: {topics: [x], style: {cel: input.s}}}]", `Invalid: node a: input.style: column 1: input.s may be absent: write input.?s`},
		"a state that there is not":               {review + "- {name: b, agent: talker, when: nodes.review.state == 'Success', prompt: x}", `Invalid: node b: when: column 23: 'Success' is not a value of nodes.review.state, which must be one of Waiting, Running, Succeeded, Failed, Skipped, NotReached; did you mean Succeeded?`},
		"a reason that there is not":              {review + "finally: [{name: b, agent: talker, when: run.reason == 'finished', prompt: x}]", `Invalid: node b: when: column 15: 'finished' is not a value of run.reason, which must be one of Finished, `},
		"input has one in a list":                 {"nodes: [{name: a, agent: writer, input: {topics: [a, {cel: '1'}]}}]", `Invalid: node a: input.topics[1]: column 1: `},
		"input of an agent that takes a prompt":   {"nodes: [{name: a, agent: talker, input: {topics: [a]}}]", `Invalid: node a: input.topics is not in Agent "talker", which declares no input; it has prompt`},
		"a prompt twice":                          {"nodes: [{name: a, agent: talker, prompt: x, input: {prompt: y}}]", `Invalid: node a: prompt and input.prompt are the same`},
		"input of a Workflow lacking":             {"nodes: [{name: a, workflow: inner}]", `Invalid: node a: input lacks subject, which the input of Workflow "inner" requires`},
		"input of a Workflow unknown":             {"nodes: [{name: a, workflow: inner, input: {subject: x, x: y}}]", `Invalid: node a: input.x is not in the input of Workflow "inner"; it has style, subject, words`},
		"an expression beside others":             {"nodes: [{name: a, agent: writer, input: {topics: {cel: a, else: b}}}]", `Invalid: node a: input.topics: cel stands for an expression, and stands alone`},
		"an expression that is none":              {review + "output: {x: {cel: 5}}", `Invalid: output.x: cel stands for an expression`},
		"output as one expression":                {review + "output: {cel: nodes.review.output}", `Invalid: output must be an object: write output: {name: {cel: "..."}}`},
		"a default of another type":               {"input: {fields: [{name: num, type: Integer, default: x}]}\n" + review, "Invalid: spec.input.fields[0].default: `num` must be an integer; got a string"},
		"a default of a list":                     {"input: {fields: [{name: num, type: List, default: x}]}\n" + review, "Invalid: spec.input.fields[0].default: `num` must be an array; got a string"},
		"a schema of a field":                     {"input: {fields: [{name: num, schema: {type: array}}]}\n" + review, "Invalid: spec.input.fields[0].schema: properties.num needs items"},
		"files of a pod":                          {"nodes: [{name: a, agent: shipwright, prompt: x}, {name: b, agent: talker, prompt: x, workspace: {from: a}}]", `Invalid: node b: workspace.from a needs files that outlive a pod; set workspace.durability of Agent "talker" to Volume`},
		"files of no node":                        {"nodes: [{name: a, agent: shipwright, prompt: x, workspace: {from: z}}]", `Invalid: node a: workspace.from names "z", which is no node; there is no other`},
		"files of itself":                         {"nodes: [{name: a, agent: shipwright, prompt: x, workspace: {from: a}}]", `Invalid: node a: workspace.from names the node itself`},
		"files of an approval":                    {"nodes: [{name: a, approval: {message: x}}, {name: b, agent: shipwright, prompt: x, workspace: {from: a}}]", `Invalid: node b: workspace.from names a, which is no agent`},
		"files of items":                          {"nodes: [{name: a, agent: shipwright, prompt: x, forEach: {items: '[1]'}}, {name: b, agent: shipwright, prompt: x, workspace: {from: a}}]", `Invalid: node b: workspace.from names a, whose items have a workspace each`},
		"files of a node of finally":              {"nodes: [{name: a, agent: shipwright, prompt: x, workspace: {from: f}}]\nfinally: [{name: f, agent: shipwright, prompt: x}]", `Invalid: node a: workspace.from names f, which is of finally`},
		"files of a later node":                   {"order: Sequential\nnodes: [{name: a, agent: shipwright, prompt: x, workspace: {from: b}}, {name: b, agent: shipwright, prompt: x}]", `Invalid: node a: workspace.from names b, which comes later`},
		"cost of what has no price":               {"limits: {cost: 1USD}\nnodes: [{name: a, agent: freeman, prompt: x}]", `PricesMissing: limits.cost needs to know what Model "free" of Agent "freeman" costs`},
		"cost of finally":                         {"finallyLimits: {cost: 1USD}\nnodes: [{name: a, agent: freeman, prompt: x}]", `PricesMissing: finallyLimits.cost needs to know`},
		"finally has all":                         {"limits: {tokens: 1k}\nfinallyLimits: {tokens: 1k}\nnodes: [{name: a, agent: talker, prompt: x}]", `Invalid: finallyLimits.tokens reserves all of limits.tokens and leaves nothing`},
		"cost of a node":                          {"nodes: [{name: a, agent: freeman, prompt: x, limits: {cost: 1USD}}]", `PricesMissing: node a: limits.cost needs to know`},
		"cost of what is nested":                  {"limits: {cost: 1USD}\nnodes: [{name: a, workflow: unpriced}]", `PricesMissing: limits.cost needs to know what Model "free" of Agent "freeman" costs`},
		"too much":                                {large(), `TooLarge: With the schemas of its Agents it has 974 KiB; at most 900 fit. Shorten the longest prompts, or put nodes into a Workflow of their own: n0 64 KiB, n1 64 KiB, n2 64 KiB`},
		"too many expressions":                    {crowded(), `TooLarge: Together with nested Workflows it has 2558 expressions; at most 2000 are allowed`},
		"the first of many":                       {"nodes: [{name: a, agent: talker, when: nodes.z.text == '', prompt: x}, {name: b, agent: talker, when: '1', prompt: x}]\noutput: {x: {cel: y}}", `Invalid: node a: when`},
	}
	others := map[string]string{
		"inner": inner, "broken": "nodes: [{name: b, agent: nobody, prompt: x}]", "back": "nodes: [{name: b, workflow: main}]",
		"silent": "nodes: [{name: b, agent: talker, prompt: x}]", "unpriced": "nodes: [{name: b, agent: freeman, prompt: x}]",
		"deep5": "nodes: [{name: b, agent: talker, prompt: x}]",
	}
	for i := 1; i < 5; i++ {
		others[fmt.Sprintf("deep%d", i)] = fmt.Sprintf("nodes: [{name: b, workflow: deep%d}, {name: c, workflow: inner, input: {subject: x}}]", i+1)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := of(t, tc.text, others)
			if got := problem(err); !strings.Contains(got, tc.want) {
				t.Errorf("Of:\n got %s\nwant %s", got, tc.want)
			}
		})
	}
}

// A limit of a Run itself is checked against the Models of all nested Workflows.
func TestARunWithALimitOfCostNeedsPrices(t *testing.T) {
	others := map[string]string{"unpriced": "nodes: [{name: b, agent: freeman, prompt: x}]"}
	cost := &v1alpha1.Limits{Cost: new(v1alpha1.Money("1USD"))}
	const missing = `Misconfigured: spec.limits.cost needs to know what Model "free" costs. Set spec.prices of the Model, or remove limits.cost`
	for name, tc := range map[string]struct {
		text   string
		limits *v1alpha1.Limits
		want   string
	}{
		"no limits":               {"nodes: [{name: a, agent: freeman, prompt: x}]", nil, ""},
		"no limit of cost":        {"nodes: [{name: a, agent: freeman, prompt: x}]", &v1alpha1.Limits{Steps: new(int32(1))}, ""},
		"prices":                  {"nodes: [{name: a, agent: talker, prompt: x}]", cost, ""},
		"an Agent without prices": {"nodes: [{name: a, agent: talker, prompt: x}, {name: b, agent: freeman, prompt: x}]", cost, missing},
		"a nested Workflow":       {"nodes: [{name: a, workflow: unpriced}]", cost, missing},
	} {
		t.Run(name, func(t *testing.T) {
			v, err := of(t, tc.text, others)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if p := v.CheckCost(tc.limits); p != nil {
				got = p.Reason + ": " + p.Message
			}
			if got != tc.want {
				t.Errorf("CheckCost:\n got %s\nwant %s", got, tc.want)
			}
		})
	}
}

// crowded is a Workflow with many expressions.
func crowded() string {
	out := "nodes:\n- {name: sub, workflow: inner, input: {subject: x}}\n"
	for i := range 10 {
		out += fmt.Sprintf("- {name: n%d, agent: talker, prompt: '%s'}\n", i, strings.Repeat("${{ run.name }}", 253))
	}
	return out
}

// large is a Workflow that is too large for a ConfigMap.
func large() string {
	var b strings.Builder
	b.WriteString("nodes:\n")
	for i := range 15 {
		fmt.Fprintf(&b, "- {name: n%d, agent: talker, prompt: %s}\n", i, strings.Repeat("x", 65536))
	}
	return b.String() + fmt.Sprintf("- {name: n15, agent: talker, prompt: %s}\n", strings.Repeat("x", 14000))
}

func TestExamplesAreReady(t *testing.T) {
	files, err := filepath.Glob("../../examples/workflow-*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			o := workflow.Objects{Workflows: map[string]*v1alpha1.Workflow{}, Agents: map[string]*v1alpha1.Agent{}, AgentObjects: map[string]snapshot.Objects{}}
			agentsOf(t, file, o)
			for _, w := range example(t, file) {
				o.Workflows[w.Name] = w
			}
			for _, name := range sorted(o.Workflows) {
				if _, err := workflow.Of(o.Workflows[name], o); err != nil {
					t.Errorf("Workflow %s: %s", name, problem(err))
				}
			}
		})
	}
}

// manyApprovals returns n approvals.
func manyApprovals(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("{name: n%d, approval: {message: x}}", i+1))
	}
	return strings.Join(all, ", ")
}
