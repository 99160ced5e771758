package workflow

import (
	"slices"
	"time"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/inputs"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/workflow/graph"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// fail stores the first problem.
func (c *compiler) fail(format string, args ...any) {
	if c.problem == nil {
		c.problem = notReady(v1alpha1.ReasonInvalid, format, args...)
	}
}

// addDependency lets a node wait for another. The output of the Workflow waits for no
// node: it is evaluated when all have ended.
func (c *compiler) addDependency(reader, target, field string) {
	if reader == "" || slices.ContainsFunc(c.dependencies[reader], func(w dependency) bool { return w.node == target }) {
		return
	}
	c.dependencies[reader] = append(c.dependencies[reader], dependency{target, field})
}

// addDependencies adds the dependencies of order and dependsOn. Order does not apply to
// nodes of finally.
func (c *compiler) addDependencies(i int, n v1alpha1.Node) {
	sequential := c.revision.Spec.Order == v1alpha1.OrderSequential && !c.isFinal(n.Name)
	if sequential && len(n.DependsOn) > 0 {
		c.fail("node %s: order: Sequential says what nodes wait for; remove dependsOn", n.Name)
	}
	if sequential && i > 0 {
		c.addDependency(n.Name, c.revision.Spec.Nodes[i-1].Name, "order")
	}
	for _, name := range n.DependsOn {
		_, found := c.index[name]
		switch {
		case !found:
			c.fail("node %s: dependsOn names %q, which is no node; %s", n.Name, name, c.listNodes(n.Name))
		case name == n.Name:
			c.fail("node %s: dependsOn names the node itself; remove it", n.Name)
		case c.isFinal(name) && !c.isFinal(n.Name):
			c.fail("node %s: dependsOn names %s, which is of finally and starts when all others have ended; remove it", n.Name, name)
		default:
			c.addDependency(n.Name, name, "dependsOn")
		}
	}
}

// checkApprovals bounds the number of approvals by what the status of a Run can have.
func (c *compiler) checkApprovals() {
	n := 0
	for _, node := range nodesOf(c.revision.Spec) {
		if node.Approval == nil {
			continue
		}
		if n++; n > task.MaxDecided {
			c.fail("node %s: a Workflow has at most %d approvals; put some into a Workflow of their own", node.Name, task.MaxDecided)
		}
	}
}

// checkNode validates what the schema cannot validate.
func (c *compiler) checkNode(n v1alpha1.Node) {
	if n.Workspace != nil {
		c.checkWorkspace(n)
	}
	if n.Approval == nil || n.Approval.Input == nil {
		return
	}
	if err := inputs.Check("approval.input", n.Approval.Input); err != nil {
		c.fail("node %s: %v", n.Name, err)
	}
	if size := len(inputs.Schema(n.Approval.Input)); size > task.MaxSchema {
		c.fail("node %s: approval.input has %d bytes as a JSON Schema; at most %d are allowed, because approvers see all of it", n.Name, size, task.MaxSchema)
	}
}

// checkWorkspace validates workspace.from of a node.
func (c *compiler) checkWorkspace(n v1alpha1.Node) {
	wrong := func(format string, args ...any) {
		c.fail("node %s: workspace.from "+format, append([]any{n.Name}, args...)...)
	}
	name := n.Workspace.From
	i, found := c.index[name]
	if !found {
		wrong("names %q, which is no node; %s", name, c.listNodes(n.Name))
		return
	}
	from := nodesOf(c.revision.Spec)[i]
	sequential := c.revision.Spec.Order == v1alpha1.OrderSequential && !c.isFinal(n.Name)
	switch {
	case name == n.Name:
		wrong("names the node itself; remove it")
	case c.isFinal(name) && !c.isFinal(n.Name):
		wrong("names %s, which is of finally and starts when all others have ended; name another", name)
	case sequential && i > c.index[n.Name]:
		wrong("names %s, which comes later, and order is Sequential; list %s before %s", name, name, n.Name)
	case from.Agent == "":
		wrong("names %s, which is no agent and has no files; name a node of an agent", name)
	case from.ForEach != nil:
		wrong("names %s, whose items have a workspace each; name a node without forEach", name)
	default:
		c.checkDurable(n, from)
		c.addDependency(n.Name, name, "workspace.from")
	}
}

// checkDurable checks that the workspaces of both nodes outlive their pods.
func (c *compiler) checkDurable(n, from v1alpha1.Node) {
	for _, agent := range []v1alpha1.ObjectName{from.Agent, n.Agent} {
		if !c.revision.Agents[string(agent)].Durable {
			c.fail("node %s: workspace.from %s needs files that outlive a pod; set workspace.durability of Agent %q to Volume", n.Name, from.Name, agent)
		}
	}
}

// checkFinally checks that finallyLimits leave something of limits to the other nodes,
// which could not start otherwise.
func checkFinally(spec v1alpha1.WorkflowSpec) *snapshot.NotReadyError {
	if spec.Limits == nil || spec.FinallyLimits == nil {
		return nil
	}
	whole, part := amounts(*spec.Limits), amounts(*spec.FinallyLimits.WorkflowLimits())
	for i, field := range []string{"steps", "tokens", "cost", "duration"} {
		if whole[i] > 0 && part[i] >= whole[i] {
			return notReady(v1alpha1.ReasonInvalid, "finallyLimits.%s reserves all of limits.%s and leaves nothing to the other nodes. Lower the first, or raise the second", field, field)
		}
	}
	return nil
}

// amounts returns limits as numbers; 0: no limit. Values that the schema refuses are no
// limit.
func amounts(l v1alpha1.WorkflowLimits) [4]int64 {
	steps, tokens, cost, duration := int64(0), int64(0), int64(0), time.Duration(0)
	if l.Steps != nil {
		steps = int64(*l.Steps)
	}
	if l.Tokens != nil {
		tokens, _ = l.Tokens.Count()
	}
	if l.Cost != nil {
		cost, _ = l.Cost.MicroUSD()
	}
	if l.Duration != nil {
		duration, _ = l.Duration.Value()
	}
	return [4]int64{steps, tokens, cost, int64(duration)}
}

// UnawaitedApprovals returns the approvals that no node waits for although other nodes start independently of the
// Decision.
func (p *Program) UnawaitedApprovals() []string {
	waitedFor := map[string]bool{}
	nodes := p.Graph.Nodes()
	for _, n := range nodes {
		for _, before := range n.Waits {
			waitedFor[before] = waitedFor[before] || !n.Final
		}
	}
	var out []string
	for _, n := range nodes {
		if n.Kind == graph.Approval && !waitedFor[n.Name] && p.hasUnrelatedWork(n.Name) {
			out = append(out, n.Name)
		}
	}
	return out
}

// hasUnrelatedWork reports whether a child Run may start that is not a dependency of a node.
func (p *Program) hasUnrelatedWork(name string) bool {
	before := p.Graph.Before(name)
	return slices.ContainsFunc(p.Graph.Nodes(), func(n graph.Node) bool {
		return n.Kind != graph.Approval && !n.Final && !slices.Contains(before, n.Name)
	})
}
