package cli

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
)

// A followed is an item that a follower prints: the conversation of a Run, or a line about a node of a Workflow without
// a Run.
type followed struct {
	treeRun // of the node: the Run of the Workflow
	node    *v1alpha1.NodeStatus
}

// inNodeOrder returns Runs, a parent before its children, in the order of the nodes of their Workflows,
// with the nodes that have no Run.
func inNodeOrder(tree []treeRun) []followed {
	runs := map[types.UID]treeRun{}
	for _, run := range tree {
		runs[run.UID] = run
	}
	root, _ := branchOf(tree)
	return appendBranch(nil, runs, root, tree[0])
}

func appendBranch(out []followed, runs map[types.UID]treeRun, b branch, parent treeRun) []followed {
	if b.run == nil {
		return append(out, followed{parent, b.node})
	}
	run := runs[b.run.UID]
	out = append(out, followed{run, nil})
	for _, below := range b.below {
		out = appendBranch(out, runs, below, run)
	}
	return out
}

// printNode prints once the state of a node without a Run: an approval, or a skipped node. A followed log shows only
// its end; any other shows its current state, after the earlier conversations.
func (f *follower) printNode(ctx context.Context, of followed) {
	key := types.UID(string(of.UID) + "/" + of.node.Name)
	isOver := of.node.State != v1alpha1.NodeWaiting && of.node.State != v1alpha1.NodeRunning
	switch {
	case f.o.window.JSON || f.started[key] || of.node.State == v1alpha1.NodeWaiting:
		return
	case f.o.follow && !isOver, !f.o.follow && f.active > 0:
		return
	}
	f.started[key] = true
	path := of.node.Name
	if of.path != "" {
		path = of.path + "/" + path
	}
	text := string(of.node.State)
	if of.node.Reason != "" {
		text += ": " + of.node.Reason
	}
	fmt.Fprintf(f.console.Stream(f.out), "[%s] ── %s%s\n", path, text, f.decidedBy(ctx, of))
}

// decidedBy names the user who decided an approval of a Workflow, or returns an empty name.
func (f *follower) decidedBy(ctx context.Context, of followed) string {
	for _, done := range progressOf(of.Run).Decided {
		if done.Request != "approval-"+of.node.Name || done.Refused != "" {
			continue
		}
		d, err := decisionOn(ctx, f.client, of.Run, done)
		if err != nil { // the user may not read it, or it was deleted
			return ", Decision " + untrusted.Line(done.Name, 200)
		}
		return fmt.Sprintf(", %s by %s", d.Spec.Type, untrusted.Line(author(of.Run, d), 270))
	}
	return ""
}

// printWorkflowEnd prints the output of a Workflow's Run, or why it failed, because no conversation shows that.
func (f *follower) printWorkflowEnd(run *v1alpha1.Run) {
	if run.Spec.Workflow == "" || !isFinished(run) || f.asker != nil || f.o.window.JSON {
		return
	}
	printResult(f.console.Stream(f.out), run)
	if reason(run) != v1alpha1.ReasonFinished {
		f.say("Run " + run.Name + " ended: " + reason(run) + ": " + message(run))
	}
}
