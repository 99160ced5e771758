package workflow

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/shared/expr"
	"github.com/deckhand-dev/deckhand/internal/workflow/graph"
)

// Values are the values of the variables of expressions.
type Values struct {
	Input json.RawMessage // with its defaults
	Run   RunValues
	Nodes map[string]NodeValue // by name
}

// RunValues is the variable run. Only finally can read Reason and Message, of how the
// Run is going to end.
type RunValues struct{ Namespace, Name, UID, Reason, Message string }

// A NodeValue is the result of a node, an item or an iteration.
type NodeValue struct {
	State  graph.State
	Counts graph.Status
	Output json.RawMessage // nil: there is none
	Text   *string         // nil: there is none
	// Deleted names a Run that succeeded and was deleted, so that its output cannot be
	// read any more; empty: there is none.
	Deleted string
	// Items has the results of forEach by index.
	Items []NodeValue
}

// vars returns the variables of an expression, with the nodes that it reads.
func (p *Program) vars(n *node, v Values, reads []string, more map[string]any) map[string]any {
	out := map[string]any{"input": v.Input}
	if len(v.Input) == 0 {
		out["input"] = json.RawMessage("{}")
	}
	run := map[string]any{"namespace": v.Run.Namespace, "name": v.Run.Name, "uid": v.Run.UID}
	if n != nil && n.final {
		run["reason"], run["message"] = v.Run.Reason, v.Run.Message
	}
	out["run"] = run
	nodes := map[string]any{}
	for _, name := range sortedKeys(p.nodes) {
		for _, field := range reads {
			if fieldOf(name) == field {
				nodes[field] = p.nodes[name].value(v.Nodes[name], n != nil && n.final)
			}
		}
	}
	out["nodes"] = nodes
	maps.Copy(out, more)
	return out
}

// value returns nodes.x.
func (n *node) value(v NodeValue, inFinally bool) map[string]any {
	state := v.State
	if state == "" {
		state = graph.Waiting
	}
	c := v.Counts
	out := map[string]any{
		"state":  string(state),
		"counts": map[string]any{"total": c.Total, "started": c.Started, "succeeded": c.Succeeded, "failed": c.Failed, "skipped": c.Skipped},
	}
	optional := inFinally || mayHaveNoOutput(n.spec)
	output, answer := orAbsent(v.Output), text(v.Text)
	if n.spec.ForEach != nil {
		output, answer = itemLists(v)
		if optional && !n.hasItemLists(v.State) {
			output, answer = expr.Absent, expr.Absent
		}
	}
	if n.output {
		out["output"] = output
	}
	if n.text {
		out["text"] = answer
	}
	return out
}

// mayHaveNoOutput reports whether the Run may continue without the output of a node,
// which is optional then.
func mayHaveNoOutput(n v1alpha1.Node) bool {
	return n.When != "" || n.OnFailure == v1alpha1.OnFailureContinue
}

// itemLists returns the outputs and texts of items. Those of failed items are absent.
func itemLists(v NodeValue) (outputs, texts any) {
	var all, answers []any
	for _, item := range v.Items {
		all = append(all, orAbsent(item.Output))
		answers = append(answers, text(item.Text))
	}
	return all, answers
}

// hasItemLists reports whether a node with items has outputs: all items succeeded, or
// they may fail.
func (n *node) hasItemLists(state graph.State) bool {
	return state == graph.Succeeded || state == graph.Failed && n.spec.OnFailure == v1alpha1.OnFailureContinue
}

// iterationValue returns self or previous.
func (n *node) iterationValue(v NodeValue) map[string]any {
	out := map[string]any{"succeeded": v.State == graph.Succeeded}
	if n.output {
		out["output"] = orAbsent(v.Output)
	}
	if n.text {
		out["text"] = text(v.Text)
	}
	return out
}

func orAbsent(raw json.RawMessage) any {
	if raw == nil {
		return expr.Absent
	}
	return raw
}

func text(t *string) any {
	if t == nil {
		return expr.Absent
	}
	return *t
}

// withDeleted adds to the error of an expression which Runs were deleted of the nodes
// that the expression reads.
func (p *Program) withDeleted(err error, v Values, reads []string) error {
	for _, name := range sortedKeys(p.nodes) {
		if run := v.Nodes[name].Deleted; err != nil && run != "" && slices.Contains(reads, fieldOf(name)) {
			err = fmt.Errorf("%w: Run %s of node %s was deleted", err, run, name)
		}
	}
	return err
}
