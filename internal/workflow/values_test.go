package workflow_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/internal/workflow"
	"github.com/deckhand-dev/deckhand/internal/workflow/graph"
)

// kinds has nodes of every kind, each of which may have no output.
const kinds = `
- {name: agent, agent: reviewer, prompt: x, onFailure: Continue}
- {name: silent, agent: talker, prompt: x, when: "true"}
- {name: sub, workflow: inner, input: {subject: x}, onFailure: Continue}
- {name: gate, approval: {message: x, input: {schema: {type: object, properties: {why: {type: string}}}}}, onFailure: Continue}
- {name: polish, agent: reviewer, prompt: "${{ previous.hasValue() }}", loop: {until: self.succeeded}, onFailure: Continue}
- {name: each, agent: reviewer, prompt: x, forEach: {items: "[1, 2]"}, onFailure: Continue}
- {name: strict, agent: reviewer, prompt: x, forEach: {items: "[1, 2]"}, when: "true"}
`

// In every state of the nodes, an expression that handles absent values has no error and
// distinguishes absent values from others.
func TestWhatMayBeAbsent(t *testing.T) {
	reader := `"a=${{ nodes.agent.?output.?score.orValue(-1) }} s=${{ nodes.silent.?text.orValue('-') }} w=${{ nodes.sub.?output.?score.orValue(-1) }} g=${{ nodes.gate.?output.?by.orValue('-') }} p=${{ nodes.polish.?output.?score.orValue(-1) }} e=${{ nodes.each.?output.hasValue() }} ${{ nodes.each.?output.orValue([]).map(o, o.?score.orValue(-1)) }} t=${{ nodes.strict.?output.orValue([]).map(o, o.score) }} ${{ nodes.agent.state }}"`
	p := program(t, "nodes:"+kinds+"- {name: reader, agent: talker, prompt: "+reader+"}\nfinally:\n- {name: last, agent: talker, prompt: "+reader+"}", map[string]string{"inner": inner})
	for _, state := range []graph.State{"", graph.Waiting, graph.Running, graph.Succeeded, graph.Failed, graph.Skipped, graph.NotReached} {
		for _, hasOutput := range []bool{true, false} {
			v, want := values(inState(state, hasOutput), ""), expected(state, hasOutput)
			for _, node := range []string{"reader", "last"} {
				if got, err := p.Prompt(node, workflow.Iteration{}, v); got != want || err != nil {
					t.Errorf("%s of %q: %v\n got %s\nwant %s", node, state, err, got, want)
				}
			}
		}
	}
}

// inState returns nodes of every kind in a state, with outputs.
func inState(state graph.State, hasOutput bool) map[string]workflow.NodeValue {
	item := workflow.NodeValue{State: graph.Succeeded, Output: json.RawMessage(`{"score":2,"files":[]}`), Text: new("said")}
	nodes := map[string]workflow.NodeValue{
		"each":   {State: state, Items: []workflow.NodeValue{item, {State: graph.Failed}}},
		"strict": {State: state, Items: []workflow.NodeValue{item, item}},
	}
	gave := map[string]string{"agent": `{"score":1,"files":[]}`, "gate": `{"approved":true,"by":"ann","at":"","reason":""}`}
	for _, name := range []string{"agent", "silent", "sub", "polish", "gate"} {
		v := workflow.NodeValue{State: state}
		if hasOutput {
			v.Output, v.Text = json.RawMessage(cmp.Or(gave[name], gave["agent"])), new("said")
		}
		nodes[name] = v
	}
	return nodes
}

// expected returns the values that the expressions of kinds read.
func expected(state graph.State, hasOutput bool) string {
	out := "a=-1 s=- w=-1 g=- p=-1"
	if hasOutput {
		out = "a=1 s=said w=1 g=ann p=1"
	}
	lists := "e=false [] t=[]"
	switch state {
	case graph.Succeeded:
		lists = "e=true [2,-1] t=[2,2]"
	case graph.Failed:
		lists = "e=true [2,-1] t=[]"
	default:
	}
	return fmt.Sprintf("%s %s %s", out, lists, cmp.Or(state, graph.Waiting))
}

// The error of a missing or invalid output has its path.
func TestMissingAndInvalidOutputs(t *testing.T) {
	p := program(t, review+"- {name: b, agent: talker, prompt: '${{ nodes.review.output.score }}'}", nil)
	for output, want := range map[string]string{
		``:                        "nodes.review.output has no value",
		`{"files":[]}`:            "score",
		`{"score":"x"}`:           "nodes.review.output.score is not an int",
		`[]`:                      "nodes.review.output",
		`{"score":1.5}`:           "nodes.review.output.score is not an int",
		`not JSON`:                "nodes.review.output",
		`{"score":9e99}`:          "nodes.review.output.score is not an int",
		strings.Repeat("[", 5000): "nodes.review.output",
	} {
		v := workflow.NodeValue{State: graph.Succeeded, Output: json.RawMessage(output)}
		_, err := p.Prompt("b", workflow.Iteration{}, values(map[string]workflow.NodeValue{"review": v}, ""))
		if got := reason(err); !strings.HasPrefix(got, "ExpressionFailed: node b: prompt: ") || !strings.Contains(got, want) || len(got) > 1000 {
			t.Errorf("%.40s: %s, want %q", output, got, want)
		}
	}
}
