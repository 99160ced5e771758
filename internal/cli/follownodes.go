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
func (w *follower) printNode(ctx context.Context, f followed) {
	key := types.UID(string(f.UID) + "/" + f.node.Name)
	isOver := f.node.State != v1alpha1.NodeWaiting && f.node.State != v1alpha1.NodeRunning
	switch {
	case w.o.window.JSON || w.started[key] || f.node.State == v1alpha1.NodeWaiting:
		return
	case w.o.follow && !isOver, !w.o.follow && w.active > 0:
		return
	}
	w.started[key] = true
	path := f.node.Name
	if f.path != "" {
		path = f.path + "/" + path
	}
	text := string(f.node.State)
	if f.node.Reason != "" {
		text += ": " + f.node.Reason
	}
	fmt.Fprintf(w.console.Stream(w.out), "[%s] ── %s%s\n", path, text, w.decidedBy(ctx, f))
}

// decidedBy names the user who decided an approval of a Workflow, or returns an empty name.
func (w *follower) decidedBy(ctx context.Context, f followed) string {
	for _, done := range progressOf(f.Run).Decided {
		if done.Request != "approval-"+f.node.Name || done.Refused != "" {
			continue
		}
		d, err := decisionOn(ctx, w.client, f.Run, done)
		if err != nil { // the user may not read it, or it was deleted
			return ", Decision " + untrusted.Line(done.Name, 200)
		}
		return fmt.Sprintf(", %s by %s", d.Spec.Type, untrusted.Line(d.Spec.By, 200))
	}
	return ""
}

// printWorkflowEnd prints the output of a Workflow's Run, or why it failed, because no conversation shows that.
func (w *follower) printWorkflowEnd(run *v1alpha1.Run) {
	if run.Spec.Workflow == "" || !isFinished(run) || w.asker != nil || w.o.window.JSON {
		return
	}
	printResult(w.console.Stream(w.out), run)
	if reason(run) != v1alpha1.ReasonFinished {
		w.say("Run " + run.Name + " ended: " + reason(run) + ": " + message(run))
	}
}
