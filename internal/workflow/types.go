package workflow

import (
	"strings"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/inputs"
	"github.com/deckhand-dev/deckhand/internal/shared/expr"
	"github.com/deckhand-dev/deckhand/internal/shared/schema"
	"github.com/deckhand-dev/deckhand/internal/workflow/graph"
)

// fieldOf returns the name of a node in expressions, where - is minus.
func fieldOf(node string) string { return strings.ReplaceAll(node, "-", "_") }

// counts returns the type of nodes.x.counts.
func counts() expr.Type {
	n := expr.Int()
	return expr.Object("counts", map[string]expr.Type{"total": n, "started": n, "succeeded": n, "failed": n, "skipped": n})
}

// state returns the type of nodes.x.state.
func state() expr.Type {
	var all []string
	for _, s := range graph.States {
		all = append(all, string(s))
	}
	return expr.Enum(all...)
}

// run returns the type of the variable run; finally has reason and message too.
func run(more ...string) expr.Type {
	fields := map[string]expr.Type{}
	for _, name := range append([]string{"namespace", "name", "uid"}, more...) {
		fields[name] = expr.String()
		if name == "reason" {
			fields[name] = expr.Enum(append([]string{v1alpha1.ReasonFinished}, v1alpha1.FailureReasons...)...)
		}
	}
	return expr.Object("run", fields)
}

// A nodeOutput describes what one child Run of a node returns.
type nodeOutput struct {
	output *expr.Type // nil: it has none
	text   bool
	// whyMissing is the message if the output or the text is missing, with what to do.
	whyMissing string
}

// outputOf returns the output of a node.
func (c *compiler) outputOf(n v1alpha1.Node) nodeOutput {
	switch {
	case n.Approval != nil:
		t := c.approvalType(n)
		return nodeOutput{output: &t, whyMissing: "node " + n.Name + " is an approval and has no text: read nodes." + fieldOf(n.Name) + ".output"}
	case n.Workflow != "":
		return c.outputOfWorkflow(n)
	}
	output := c.revision.Agents[string(n.Agent)].Output
	if output == nil {
		return nodeOutput{text: true, whyMissing: "Agent \"" + string(n.Agent) + "\" has no output.schema, so node " + n.Name + " has a text only: read nodes." + fieldOf(n.Name) + ".text, or give the Agent an output.schema"}
	}
	t, err := expr.FromSchema("agents."+string(n.Agent)+".output", output)
	if err != nil {
		c.fail("node %s: output.schema of Agent %q: %v", n.Name, n.Agent, err)
		return nodeOutput{text: true}
	}
	return nodeOutput{output: &t, text: true}
}

func (c *compiler) outputOfWorkflow(n v1alpha1.Node) nodeOutput {
	nested := c.nested[string(n.Workflow)]
	if nested.output == nil {
		return nodeOutput{whyMissing: "Workflow \"" + string(n.Workflow) + "\" declares no output, so node " + n.Name + " has neither output nor text: add output to that Workflow"}
	}
	t := nested.outputType
	return nodeOutput{output: &t, whyMissing: "node " + n.Name + " is a Workflow and has no text: read nodes." + fieldOf(n.Name) + ".output"}
}

// approvalType returns the type of the output of an approval. If the Run continues after
// a denial, input may be absent.
func (c *compiler) approvalType(n v1alpha1.Node) expr.Type {
	s := expr.String()
	fields := map[string]expr.Type{"approved": expr.Bool(), "by": s, "at": s, "reason": s}
	if in := n.Approval.Input; in != nil {
		t, err := expr.FromSchema(c.typeName(n.Name, "output.input"), schema.Filled(inputs.Schema(in)))
		switch {
		case err != nil: // checkNode reports it
			t = expr.Dyn()
		case c.findingReadApprovals:
			t = expr.Dyn() // whether it is optional is not known yet
		case c.lenient[n.Name]:
			t = expr.Optional(t)
		}
		fields["input"] = t
	}
	return expr.Object(c.typeName(n.Name, "output"), fields)
}

func (c *compiler) typeName(node, of string) string {
	return "workflows." + c.revision.Name + ".nodes." + fieldOf(node) + "." + of
}

// nodeType returns the type of nodes.x for a reader.
func (c *compiler) nodeType(n v1alpha1.Node, inFinally bool) expr.Type { //nolint:revive // there are two scopes
	fields := map[string]expr.Type{"state": state(), "counts": counts()}
	add := func(name string, t expr.Type) {
		if n.ForEach != nil && n.OnFailure == v1alpha1.OnFailureContinue {
			t = expr.Optional(t)
		}
		if n.ForEach != nil {
			t = expr.List(t)
		}
		if inFinally || mayHaveNoOutput(n) {
			t = expr.Optional(t)
		}
		fields[name] = t
	}
	g := c.outputs[n.Name]
	if g.output != nil {
		add("output", *g.output)
	}
	if g.text {
		add("text", expr.String())
	}
	return expr.Object("workflows."+c.revision.Name+".nodes."+fieldOf(n.Name), fields)
}

// iterationType returns the type of self and previous: one iteration.
func (c *compiler) iterationType(n v1alpha1.Node, name string) expr.Type {
	fields := map[string]expr.Type{"succeeded": expr.Bool()}
	g := c.outputs[n.Name]
	if g.output != nil {
		fields["output"] = *g.output
	}
	if g.text {
		fields["text"] = expr.String()
	}
	return expr.Object(c.typeName(n.Name, name), fields)
}
