package workflow

import (
	"fmt"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/shared/expr"
	"github.com/deckhand-dev/deckhand/internal/shared/template"
)

// Warnings returns what is likely wrong in a Workflow that is Ready: references in the syntax of
// another tool, and approvals for which no node waits.
func Warnings(v *Revision) []string {
	var out []string
	if p, err := Compile(v); err == nil {
		if names := p.UnawaitedApprovals(); len(names) > 0 {
			out = append(out, fmt.Sprintf("no node waits for the approval %s: add it to dependsOn of the nodes that must wait for it", strings.Join(names, ", ")))
		}
	}
	return append(append(out, limitWarnings(v.Spec)...), foreign(v.Spec)...)
}

// limitWarnings returns which limits contradict those beside or above them.
func limitWarnings(spec v1alpha1.WorkflowSpec) []string {
	var whole v1alpha1.WorkflowLimits
	if spec.Limits != nil {
		whole = *spec.Limits
	}
	var out []string
	if isOneByOne(spec) {
		out = snapshot.LimitWarnings("spec.limits", v1alpha1.Limits{Duration: whole.Duration, Deadline: whole.Deadline})
	}
	for _, n := range nodesOf(spec) {
		if n.Limits == nil {
			continue
		}
		at := location{node: n.Name}.prefix()
		for _, w := range append(snapshot.LimitWarnings("limits", *n.Limits), snapshot.NodeLimitWarnings(*n.Limits, whole)...) {
			out = append(out, at+w)
		}
	}
	return out
}

// isOneByOne reports whether no two nodes work at the same time. Of others, limits.duration sums up
// what passes at the same time, so that it may be longer than limits.deadline.
func isOneByOne(spec v1alpha1.WorkflowSpec) bool {
	isOne := len(spec.Nodes) == 1 || spec.Order == v1alpha1.OrderSequential
	return isOne && !slices.ContainsFunc(spec.Nodes, func(n v1alpha1.Node) bool { return n.ForEach != nil || n.Workflow != "" })
}

// foreign reports the first reference of each prompt and message that is written in
// the syntax of another tool, {{ x }} or $(params.x): a model would get it as text.
func foreign(spec v1alpha1.WorkflowSpec) []string {
	var out []string
	for _, n := range nodesOf(spec) {
		field, text, becomes := "prompt", n.Prompt, "sent to the model"
		if n.Approval != nil {
			field, text, becomes = "approval.message", n.Approval.Message, "shown"
		}
		if found := template.FindForeign(text); len(found) > 0 {
			f := found[0]
			out = append(out, fmt.Sprintf("%s: %s%s is %s as text; write ${{ %s }}%s",
				location{n.Name, field}, position(&expr.Error{Line: f.Line, Column: f.Column}), f.Text, becomes, reference(f), template.OtherForeign(found)))
		}
	}
	return out
}

// reference returns the expression for a reference of another tool.
func reference(f template.Foreign) string {
	switch whole := strings.Join(f.Path, "."); f.Path[0] {
	case "run", "self", "previous", "item", "index", "iteration":
		return whole
	case "nodes":
		return fieldOf(whole)
	case "tasks", "steps":
		if len(f.Path) > 1 {
			return "nodes." + fieldOf(f.Path[1]) + ".output"
		}
	}
	return "input." + f.Name()
}
