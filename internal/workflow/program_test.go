package workflow_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/internal/shared/inputtext"
	"github.com/deckhand-dev/deckhand/internal/workflow"
	"github.com/deckhand-dev/deckhand/internal/workflow/graph"
)

// a Run of these tests.
var x = workflow.RunValues{Namespace: "team-a", Name: "x", UID: "u", Reason: "NodeFailed", Message: "It broke."}

// done is a node that succeeded.
func done(output, said string) workflow.NodeValue {
	v := workflow.NodeValue{State: graph.Succeeded, Counts: graph.Status{Total: 1, Started: 1, Succeeded: 1}, Text: new(said)}
	if output != "" {
		v.Output = json.RawMessage(output)
	}
	return v
}

func values(nodes map[string]workflow.NodeValue, input string) workflow.Values {
	return workflow.Values{Input: json.RawMessage(input), Run: x, Nodes: nodes}
}

// reason returns the reason of a failed node.
func reason(err error) string {
	if p, is := errors.AsType[*workflow.Problem](err); is {
		return p.Reason + ": " + p.Message
	}
	return fmt.Sprint(err)
}

const tour = `
input: {fields: [{name: who}, {name: words, type: Integer, default: 20}, {name: style, required: false}]}
nodes:
- {name: review, agent: reviewer, prompt: "For ${{ input.who }} of ${{ run.namespace }}/${{ run.name }}: $${{ literal }}"}
- {name: gate, approval: {message: "May it? ${{ nodes.review.output }}", input: {schema: {type: object, properties: {why: {type: string}}}}}}
- {name: maybe, agent: talker, when: nodes.review.output.score > 3 && nodes.gate.output.approved, prompt: "${{ nodes.gate.output.?input.?why.orValue('no word') }}"}
- name: each
  agent: reviewer
  forEach: {items: nodes.review.output.files}
  prompt: "${{ index }} ${{ item }}"
  onFailure: Continue
- name: write-up
  agent: writer
  loop: {until: "self.text.contains('done') || iteration >= input.words"}
  prompt: "${{ iteration }} after ${{ previous.?text.orValue('nothing') }}"
  input: {topics: {cel: "nodes.each.?output.orValue([]).map(o, o.?note.orValue('-'))"}, words: {cel: input.words}, style: {cel: "input.?style"}}
finally:
- {name: tell, agent: talker, prompt: "${{ run.reason }}: ${{ run.message }} ${{ nodes.review.?text.orValue('') }} ${{ nodes.maybe.state }} ${{ nodes.each.counts }}"}
output:
  marks: {cel: nodes.review.output.score}
  notes: [{cel: nodes.write_up.text}, {cel: "'and ${{ not read }}'"}]
`

func TestTour(t *testing.T) {
	p := program(t, tour, nil)
	params, err := p.Input(json.RawMessage(`{"who": "Ann ${{ run.uid }} \"x\""}`))
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"who":"Ann ${{ run.uid }} \"x\"","words":20}`; string(params) != want {
		t.Fatalf("Input() = %s, want %s", params, want)
	}
	nodes := map[string]workflow.NodeValue{}
	v := values(nodes, string(params))
	ask := func(what, want string, got func() (any, error)) {
		t.Helper()
		out, err := got()
		if raw, is := out.(json.RawMessage); is {
			out = string(raw)
		}
		if err != nil || fmt.Sprint(out) != want {
			t.Errorf("%s is %v, error %v; want %s", what, out, err, want)
		}
	}
	bound := func(node string, turn workflow.Iteration) func() (any, error) {
		return func() (any, error) {
			prompt, err := p.Prompt(node, turn, v)
			if err != nil {
				return nil, err
			}
			return inputtext.Bind(prompt, nil, nil) // as the child reads it
		}
	}
	ask("the prompt of review", `For Ann ${{ run.uid }} "x" of team-a/x: ${{ literal }}`, bound("review", workflow.Iteration{}))
	nodes["review"] = done(`{"score":5,"files":["a","b"]}`, "Reviewed.")
	ask("the message of gate", `May it? {"files":["a","b"],"score":5}`, func() (any, error) { return p.Message("gate", v) })
	nodes["gate"] = done(`{"approved":true,"by":"ann","at":"2030-01-01T12:00:00Z","reason":"fine"}`, "")
	ask("the condition of maybe", "true", func() (any, error) { return p.When("maybe", v) })
	ask("no condition", "true", func() (any, error) { return p.When("review", v) })
	ask("the prompt of maybe", "no word", bound("maybe", workflow.Iteration{}))
	nodes["gate"] = workflow.NodeValue{State: graph.Succeeded, Output: json.RawMessage(`{"approved":false,"by":"ann","at":"","reason":"","input":{"why":"late"}}`)}
	ask("the condition of maybe, denied", "false", func() (any, error) { return p.When("maybe", v) })
	ask("the prompt of maybe with a word", "late", bound("maybe", workflow.Iteration{}))
	ask("the items", `["a" "b"]`, func() (any, error) {
		items, err := p.Items("each", v)
		return fmt.Sprintf("%s", items), err
	})
	ask("the prompt of an item", "1 b", bound("each", workflow.Iteration{Number: 1, Item: json.RawMessage(`"b"`)}))
	nodes["each"] = workflow.NodeValue{State: graph.Succeeded, Counts: graph.Status{Total: 2, Started: 2, Succeeded: 1, Failed: 1}, Items: []workflow.NodeValue{
		done(`{"score":1,"files":[],"note":"good"}`, "one"), {State: graph.Failed},
	}}
	ask("what the first iteration is given", `{"topics":["good","-"],"words":20}`, func() (any, error) { return p.NodeInput("write-up", workflow.Iteration{Number: 1}, v) })
	ask("the prompt of the first iteration", "1 after nothing", bound("write-up", workflow.Iteration{Number: 1}))
	first := done("", "begun")
	ask("the prompt of the second iteration", "2 after begun", bound("write-up", workflow.Iteration{Number: 2, Previous: &first}))
	ask("whether the first is good", "false", func() (any, error) { return p.Until("write-up", 1, first, v) })
	ask("whether the twentieth is", "true", func() (any, error) { return p.Until("write-up", 20, first, v) })
	nodes["write-up"] = done("", "it is done")
	ask("the output", `{"marks":5,"notes":["it is done","and ${{ not read }}"]}`, func() (any, error) { return p.Output(v) })
	delete(nodes, "review")
	nodes["maybe"] = workflow.NodeValue{State: graph.Skipped}
	ask("what finally says", `NodeFailed: It broke.  Skipped {"failed":1,"skipped":0,"started":2,"succeeded":1,"total":2}`, bound("tell", workflow.Iteration{}))
}

func TestInputThatDoesNotFit(t *testing.T) {
	p := program(t, `
input: {fields: [{name: who}, {name: words, type: Integer, default: 20}, {name: list, schema: {type: array, items: {type: object, required: [num], properties: {num: {type: integer}}}}, required: false}]}
nodes: [{name: a, agent: talker, prompt: x}]`, nil)
	cases := map[string]struct{ given, want string }{
		"all there":              {`{"who":"a","list":[{"num":1}]}`, ""},
		"one is missing":         {`{}`, "`who` is missing"},
		"none at all":            {``, "`who` is missing"},
		"one of another type":    {`{"who":"a","words":"b"}`, "`words` must be an integer; got a string"},
		"null":                   {`{"who":null}`, "`who` must be a string; got null"},
		"one that nobody knows":  {`{"who":"a","wrods":1}`, "`wrods` is not known"},
		"one that is deep in it": {`{"who":"a","list":[{"num":1},{"num":"x"}]}`, "num` must be an integer"},
		"no object":              {`[1]`, "the value must be an object; got an array"},
		"no JSON":                {`{`, "the value is not JSON"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := p.Input(json.RawMessage(tc.given))
			if got := fmt.Sprint(err); tc.want == "" && err != nil || !strings.Contains(got, tc.want) {
				t.Errorf("Input() = %v, want %q", err, tc.want)
			}
		})
	}
}

// An output is inserted into a prompt unchanged.
func TestAValueIsNeverReadAgain(t *testing.T) {
	p := program(t, "nodes: [{name: a, agent: talker, prompt: x}, {name: b, agent: talker, prompt: '<${{ nodes.a.text }}>'}]", nil)
	for _, evil := range []string{"${{ input.secret }}", "$${{ x }}", `"quotes" 'and' \ `, "}} ${{", "$", "${", "${{${{", "$$$${{", "\n\t", "ä€😀"} {
		prompt, err := p.Prompt("b", workflow.Iteration{}, values(map[string]workflow.NodeValue{"a": done("", evil)}, ""))
		if err != nil {
			t.Errorf("%q: %v", evil, err)
			continue
		}
		if got, err := inputtext.Bind(prompt, nil, json.RawMessage(`{"secret":"told"}`)); err != nil || got != "<"+evil+">" {
			t.Errorf("%q: the child reads %q, error %v", evil, got, err)
		}
	}
}

func TestWhatFailsAtRunTime(t *testing.T) {
	p := program(t, `
input: {fields: [{name: l, type: List, default: []}]}
nodes:
- {name: a, agent: reviewer, prompt: x}
- {name: b, agent: talker, when: "nodes.a.output.files[3] == 'x'", prompt: "Sum up ${{ run.name }}: ${{ nodes.a.text }}"}
- {name: c, agent: writer, input: {topics: {cel: nodes.a.output.files}}}
- {name: d, agent: talker, forEach: {items: "[1, 2].map(i, 1 / (i - 1))"}, prompt: "x"}
- {name: e, agent: talker, prompt: "${{ nodes.a.output.?note.orValue('') }}"}
- {name: f, agent: talker, loop: {until: "input.l[0] == iteration"}, prompt: x}
- {name: g, agent: writer, input: {topics: {cel: input.l}}}
- {name: h, workflow: sub, input: {num: {cel: "size(nodes.a.text)"}, s: {cel: "nodes.a.text"}}}
output: {short: {cel: run.name}, long: {cel: nodes.a.text}}`, map[string]string{"sub": `
input: {fields: [{name: num, schema: {type: integer, maximum: 10}}, {name: s}]}
nodes: [{name: a, agent: talker, prompt: x}]`})
	with := func(said string, files ...string) workflow.Values {
		out := string(raw(t, map[string]any{"score": 1, "files": files}))
		if files == nil {
			out = `{"score":1,"files":[]}`
		}
		return values(map[string]workflow.NodeValue{"a": done(out, said)}, `{"l":[1]}`)
	}
	big := strings.Repeat("x", 70_000)
	escapes := strings.Repeat("${{", 20_000)
	prompt := func(node string, v workflow.Values) error {
		_, err := p.Prompt(node, workflow.Iteration{}, v)
		return err
	}
	given := func(node string, v workflow.Values) error {
		_, err := p.NodeInput(node, workflow.Iteration{}, v)
		return err
	}
	when := func() error {
		_, err := p.When("b", with(""))
		return err
	}
	items := func() error {
		_, err := p.Items("d", with(""))
		return err
	}
	until := func() error {
		_, err := p.Until("f", 1, done("", ""), values(nil, `{"l":[]}`))
		return err
	}
	output := func() error {
		_, err := p.Output(with(big))
		return err
	}
	cases := map[string]struct {
		err  error
		want string
	}{
		"a condition":                 {when(), "ExpressionFailed: node b: when: "},
		"items":                       {items(), "ExpressionFailed: node d: forEach.items: "},
		"the end of a loop":           {until(), "ExpressionFailed: node f: loop.until: "},
		"a prompt that is too long":   {prompt("b", with(big)), `TooLarge: node b: prompt: the text has more than 65536 bytes; 70000 of them are the value of "nodes.a.text"`},
		"a prompt with escapes":       {prompt("b", with(escapes)), "TooLarge: node b: prompt: it has 80"},
		"a prompt without a word":     {prompt("e", with("x")), "ExpressionFailed: node e: prompt: the text is empty after its expressions are replaced"},
		"values that are too large":   {given("c", with("", big)), "TooLarge: node c: input: it has 70"},
		"values of another type":      {given("g", with("")), "ExpressionFailed: node g: input: `topics[0]` must be a string"},
		"an input that does not fit":  {given("h", with(strings.Repeat("x", 11))), "ExpressionFailed: node h: input: `num` must be at most 10; got 11"},
		"an output that is too large": {output(), "TooLarge: output: it has 70023 bytes of JSON, 70002 of them in long; at most 16384 are allowed"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := reason(tc.err); !strings.HasPrefix(got, tc.want) {
				t.Errorf("got %s\nwant %s", got, tc.want)
			}
		})
	}
	if err := given("h", with("short")); err != nil {
		t.Errorf("an input that fits: %v", err)
	}
}

// A node depends on the nodes that its expressions read, and on no others.
func TestWhoWaitsForWhom(t *testing.T) {
	p := program(t, tour, nil)
	got := map[string]string{}
	for _, n := range p.Graph.Nodes() {
		got[n.Name] = fmt.Sprintf("%s %v", n.Kind, n.Waits)
		if n.Lenient {
			got[n.Name] += " lenient"
		}
		if n.Conditional {
			got[n.Name] += " conditional"
		}
		if n.Continue {
			got[n.Name] += " continue"
		}
		if n.Final {
			got[n.Name] += " final"
		}
		if n.MaxParallel+n.MaxIterations > 0 {
			got[n.Name] += fmt.Sprintf(" %d %d", n.MaxParallel, n.MaxIterations)
		}
	}
	want := map[string]string{
		"review":   "Single []",
		"gate":     "Approval [review] lenient",
		"maybe":    "Single [gate review] conditional",
		"each":     "Items [review] continue 5 0",
		"write-up": "Loop [each] 0 10",
		"tell":     "Single [each maybe review] final",
	}
	for name := range got {
		words := strings.SplitN(got[name], "[", 2)
		rest := strings.SplitN(words[1], "]", 2)
		names := strings.Fields(rest[0])
		got[name] = words[0] + "[" + strings.Join(sorted(set(names)), " ") + "]" + rest[1]
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func set(names []string) map[string]bool {
	out := map[string]bool{}
	for _, n := range names {
		out[n] = true
	}
	return out
}

func TestOneAfterTheOther(t *testing.T) {
	p := program(t, `
order: Sequential
nodes: [{name: c, agent: talker, prompt: x}, {name: b, agent: talker, prompt: x}, {name: a, agent: talker, prompt: "${{ nodes.c.text }}"}]
finally: [{name: f, agent: talker, prompt: x}, {name: g, agent: talker, prompt: x}]`, nil)
	for node, want := range map[string]string{"c": "[]", "b": "[c]", "a": "[b c]", "f": "[a b c]", "g": "[a b c]"} {
		if got := fmt.Sprint(p.Graph.Before(node)); got != want {
			t.Errorf("%s waits for %s, want %s", node, got, want)
		}
	}
}
