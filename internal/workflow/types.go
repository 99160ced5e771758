package workflow

import (
	"strings"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/expr"
	"github.com/deckhand-dev/deckhand/internal/graph"
	"github.com/deckhand-dev/deckhand/internal/inputs"
	"github.com/deckhand-dev/deckhand/internal/schema"
)

// fieldOf is a node's name in expressions, where - is minus.
func fieldOf(node string) string { return strings.ReplaceAll(node, "-", "_") }

// counts is the type of nodes.x.counts.
func counts() expr.Type {
	n := expr.Int()
	return expr.Object("counts", map[string]expr.Type{"total": n, "started": n, "succeeded": n, "failed": n, "skipped": n})
}

// state is the type of nodes.x.state.
func state() expr.Type {
	var all []string
	for _, s := range graph.States {
		all = append(all, string(s))
	}
	return expr.Enum(all...)
}

// run is the type of the variable run; reason and message are there in finally.
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

// A gift is what a node gives to those that read it, as one of its Runs has it.
type nodeOutput struct {
	output *expr.Type // nil: it gives none
	text   bool
	// lacks says why there is no output, or no text, and what to do.
	whyMissing string
}

// gift is what a node gives.
func (c *compiler) outputOf(n v1alpha1.Node) nodeOutput {
	switch {
	case n.Approval != nil:
		t := c.approvalType(n)
		return nodeOutput{output: &t, whyMissing: "node " + n.Name + " is an approval and has no text: read nodes." + fieldOf(n.Name) + ".output"}
	case n.Workflow != "":
		return c.outputOfWorkflow(n)
	}
	output := c.version.Agents[string(n.Agent)].Output
	if output == nil {
		return nodeOutput{text: true, whyMissing: "Agent \"" + string(n.Agent) + "\" has no output.schema, so node " + n.Name + " has a text only: read nodes." + fieldOf(n.Name) + ".text, or give the Agent an output.schema"}
	}
	t, err := expr.FromSchema("agents."+string(n.Agent)+".output", output)
	if err != nil {
		c.fail(v1alpha1.ReasonNodeInvalid, "node %s: output.schema of Agent %q: %v", n.Name, n.Agent, err)
		return nodeOutput{text: true}
	}
	return nodeOutput{output: &t, text: true}
}

func (c *compiler) outputOfWorkflow(n v1alpha1.Node) nodeOutput {
	nested := c.nested[string(n.Workflow)]
	if nested.output == nil {
		return nodeOutput{whyMissing: "Workflow \"" + string(n.Workflow) + "\" says no output, so node " + n.Name + " has neither output nor text: write output in that Workflow"}
	}
	t := nested.outputType
	return nodeOutput{output: &t, whyMissing: "node " + n.Name + " is a Workflow and has no text: read nodes." + fieldOf(n.Name) + ".output"}
}

// approval is the type of the output of an approval. Where a Deny lets the Run go
// on, what is said with an approval may not be there.
func (c *compiler) approvalType(n v1alpha1.Node) expr.Type {
	s := expr.String()
	fields := map[string]expr.Type{"approved": expr.Bool(), "by": s, "at": s, "reason": s}
	if in := n.Approval.Input; in != nil {
		t, err := expr.FromSchema(c.typeName(n.Name, "output.input"), schema.Filled(inputs.Schema(in)))
		switch {
		case err != nil: // the check of the node says so
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
	return "workflows." + c.version.Name + ".nodes." + fieldOf(node) + "." + of
}

// node is the type of nodes.x for a reader.
func (c *compiler) nodeType(n v1alpha1.Node, inFinally bool) expr.Type { //nolint:revive // the two scopes that there are
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
	return expr.Object("workflows."+c.version.Name+".nodes."+fieldOf(n.Name), fields)
}

// once is the type of self, and of previous: one iteration.
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
