package workflowrun

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
	"github.com/deckhand-dev/deckhand/internal/cluster/statuspatch"
	"github.com/deckhand-dev/deckhand/internal/run/children"
	"github.com/deckhand-dev/deckhand/internal/run/continuing"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/internal/workflow/graph"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// statusOf computes the status from state, plan and results.
func statusOf(s state, p plan) v1alpha1.RunStatus {
	status := *s.run.Status.DeepCopy()
	if p.Reason == "" {
		p.Outcome = runstatus.OutcomeOf(s.run.Status)
	}
	if p.storeRevision != nil {
		recordStart(&status, s, p)
	}
	if p.progress != nil {
		status.Nodes = p.progress.nodes
		status.Progress = progressOf(s, p.progress)
	}
	if p.reusedProgress != nil {
		status.Progress = p.reusedProgress
	}
	if p.progress != nil || p.pendingSince != nil {
		status.Internal.PendingSince = p.pendingSince
	}
	if p.Settles() && status.Progress != nil {
		status.Progress.State, status.Progress.Pending = "", nil
	}
	if p.Settles() && status.CompletionTime == nil {
		endNodes(status.Nodes, metav1.NewTime(s.now))
	}
	p.WriteStatus(&status, s.run, s.now)
	return withoutUsageChurn(s.run.Status, status)
}

// recordStart records with what the Run starts: the revision of its Workflow, and the Run that it retries.
func recordStart(status *v1alpha1.RunStatus, s state, p plan) {
	now := metav1.NewTime(s.now)
	status.WorkflowRevision, status.StartTime = p.storeRevision.Hash, &now
	status.Nodes = nil
	if s.source != nil && s.source.run != nil {
		status.ContinuedFrom = continuing.StatusOf(s.source.run)
	}
	for _, n := range s.nodes() {
		status.Nodes = append(status.Nodes, v1alpha1.NodeStatus{Name: n.Name, State: v1alpha1.NodeWaiting})
	}
}

// endNodes ends the nodes of a Run that ends before its graph does: active nodes are stopped, and no other starts.
func endNodes(nodes []v1alpha1.NodeStatus, now metav1.Time) {
	for i := range nodes {
		n := &nodes[i]
		if n.State == v1alpha1.NodeRunning {
			n.State, n.Reason, n.FinishedAt = v1alpha1.NodeFailed, graph.ReasonCancelled, &now
		}
		if n.State == v1alpha1.NodeWaiting {
			n.State, n.Reason = v1alpha1.NodeNotReached, ""
		}
	}
}

// withoutUsageChurn keeps the recorded numbers unless something else changed, to avoid a write
// for each report of a child.
func withoutUsageChurn(had, want v1alpha1.RunStatus) v1alpha1.RunStatus {
	if had.Progress == nil || want.Progress == nil {
		return want
	}
	still := *want.DeepCopy()
	still.Progress.Counts, still.Progress.Usage, still.Progress.Effects = had.Progress.Counts, had.Progress.Usage, had.Progress.Effects
	if equality.Semantic.DeepEqual(had, still) {
		return still
	}
	return want
}

// progressOf returns the progress of the Run, with the sums of its children.
func progressOf(s state, p *progress) *v1alpha1.RunProgress {
	had := v1alpha1.RunProgress{}
	if s.run.Status.Progress != nil {
		had = *s.run.Status.Progress
	}
	out := &v1alpha1.RunProgress{Version: task.Version, Pending: p.pending, Decided: p.decided, Result: p.result, Effects: had.Effects}
	if len(p.pending) > 0 {
		out.State = v1alpha1.ReasonAwaitingApproval
	}
	children.AddUsage(s.children, out)
	for _, reserved := range reservationsOfDeleted(s) {
		reserved.AddTo(out)
	}
	children.KeepUsage(out, had)
	return out
}

// nodeStatus returns the recorded status of a node, or nil.
func nodeStatus(nodes []v1alpha1.NodeStatus, name string) *v1alpha1.NodeStatus {
	i := slices.IndexFunc(nodes, func(n v1alpha1.NodeStatus) bool { return n.Name == name })
	if i < 0 {
		return nil
	}
	return &nodes[i]
}

// recordedState returns the recorded state of a node.
func recordedState(s state, node string) graph.Status {
	n := nodeStatus(s.run.Status.Nodes, node)
	if n == nil {
		return graph.Status{State: graph.Waiting}
	}
	status := graph.Status{State: graph.State(n.State), Reason: n.Reason}
	if status.State == graph.Running && status.Reason == v1alpha1.ReasonAwaitingApproval {
		status.Reason = "" // for users: in the graph, the reason of a running node is why it fails
	}
	if c := n.Counts; c != nil {
		status.Total, status.Started = int(c.Total), int(c.Started)
		status.Succeeded, status.Failed, status.Skipped = int(c.Succeeded), int(c.Failed), int(c.Skipped)
	}
	return status
}

// nodeStatuses returns the states of the nodes, to be recorded.
func (e *evaluation) nodeStatuses(next graph.Next) []v1alpha1.NodeStatus {
	var out []v1alpha1.NodeStatus
	for _, n := range e.nodes() {
		out = append(out, e.nodeStatus(n.Name, next.Nodes[n.Name]))
	}
	return out
}

func (e *evaluation) nodeStatus(name string, status graph.Status) v1alpha1.NodeStatus {
	had := nodeStatus(e.run.Status.Nodes, name)
	out := v1alpha1.NodeStatus{Name: name, State: v1alpha1.NodeState(status.State), Reason: status.Reason}
	if had != nil {
		out.StartedAt, out.FinishedAt = had.StartedAt, had.FinishedAt
	}
	isApproval := e.program.Node(name).Approval != nil
	if isApproval && status.State == graph.Running && status.Reason == "" {
		out.Reason = v1alpha1.ReasonAwaitingApproval
	}
	now := metav1.NewTime(e.now)
	worked := status.State == graph.Running || status.State == graph.Succeeded || status.State == graph.Failed
	if worked && out.StartedAt == nil {
		out.StartedAt = &now
	}
	if worked && status.State != graph.Running && out.FinishedAt == nil {
		out.FinishedAt = &now
	}
	if isApproval || status.Total+status.Started+status.Succeeded+status.Failed+status.Skipped == 0 {
		return out
	}
	count := func(n int) int32 { return int32(min(max(n, 0), graph.MaxItems)) }
	out.Counts = &v1alpha1.NodeCounts{Total: count(status.Total), Started: count(status.Started), Succeeded: count(status.Succeeded), Failed: count(status.Failed), Skipped: count(status.Skipped)}
	return out
}

// updateStatus writes the status, and returns when to look again. A request that the API server refused is repeated
// after a while. A temporary failure is returned as an error, so that the queue backs off. After a conflict nothing is
// written, because the observed state is old.
func (r *Reconciler) updateStatus(ctx context.Context, s state, p plan) (ctrl.Result, error) {
	var failure error
	if s.failure != nil {
		failure = s.failure.err
	}
	if failure != nil && (apierr.IsConflict(failure) || ctx.Err() != nil) {
		return ctrl.Result{}, failure
	}
	err := r.writeStatus(ctx, s, p)
	switch {
	case err != nil:
		return ctrl.Result{}, errors.Join(failure, err)
	case failure != nil && !apierr.IsRefusal(failure):
		return ctrl.Result{}, failure
	}
	return ctrl.Result{RequeueAfter: p.wake}, nil
}

// writeStatus writes the status once, only if it changed, and then emits events. It requires that the Run is unchanged
// since it was observed, because nothing else writes the status.
func (r *Reconciler) writeStatus(ctx context.Context, s state, p plan) error {
	if p.deleteRun || !s.run.DeletionTimestamp.IsZero() {
		return nil
	}
	return r.statusUpdater.UpdateStatus(ctx, s.run, statusOf(s, p), statuspatch.SameObject(s.run), statuspatch.SameVersion(s.run))
}
