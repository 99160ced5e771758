package workflow

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/expr"
	"github.com/deckhand-dev/deckhand/internal/graph"
)

// Values are what is known when expressions are read.
type Values struct {
	Input json.RawMessage // with its defaults
	Run   RunValues
	Nodes map[string]NodeValue // by name
}

// RunValues are what expressions read as run. Reason and Message, of how it ends,
// are for finally.
type RunValues struct{ Namespace, Name, UID, Reason, Message string }

// A NodeValue is what a node came to, or one item, or one iteration.
type NodeValue struct {
	State  graph.State
	Counts graph.Status
	Output json.RawMessage // nil: there is none
	Text   *string         // nil: the same
	// Deleted names a Run that succeeded and was deleted, so that its output cannot be
	// read any more; empty: there is none.
	Deleted string
	// Items are those of forEach, by their index.
	Items []NodeValue
}

// vars are the values of what an expression may read; only nodes that it reads
// are among them.
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

// value is nodes.x.
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
	output, said := orAbsent(v.Output), text(v.Text)
	if n.spec.ForEach != nil {
		output, said = n.itemLists(v)
		if optional && !n.hasItemLists(v.State) {
			output, said = expr.Absent, expr.Absent
		}
	}
	if n.output {
		out["output"] = output
	}
	if n.text {
		out["text"] = said
	}
	return out
}

// mayLack says whether a node may come to nothing though the Run goes on: what
// others read of it is then optional.
func mayHaveNoOutput(n v1alpha1.Node) bool {
	return n.When != "" || n.OnFailure == v1alpha1.OnFailureContinue
}

// lists are the outputs and the texts of items. Where some may fail, theirs are
// absent.
func (n *node) itemLists(v NodeValue) (outputs, texts any) {
	var all, words []any
	for _, item := range v.Items {
		all = append(all, orAbsent(item.Output))
		words = append(words, text(item.Text))
	}
	return all, words
}

// hasLists says whether a node with items has come to lists: all did their work,
// or some were allowed to fail.
func (n *node) hasItemLists(state graph.State) bool {
	return state == graph.Succeeded || state == graph.Failed && n.spec.OnFailure == v1alpha1.OnFailureContinue
}

// once is self, and previous.
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
