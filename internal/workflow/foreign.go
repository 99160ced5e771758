package workflow

import (
	"fmt"
	"strings"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/expr"
	"github.com/deckhand-dev/deckhand/internal/template"
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
	return append(out, foreign(v.Spec)...)
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
		if f, found := template.FindForeign(text); found {
			out = append(out, fmt.Sprintf("%s: %s%s is %s as text; write ${{ %s }}",
				location{n.Name, field}, position(&expr.Error{Line: f.Line, Column: f.Column}), f.Text, becomes, reference(f)))
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
