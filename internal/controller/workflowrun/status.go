package workflowrun

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/graph"
	"github.com/deckhand-dev/deckhand/internal/outcome"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// statusOf is a pure account of what was seen, decided and done.
func statusOf(w world, p plan) v1alpha1.RunStatus {
	s := *w.run.Status.DeepCopy()
	if p.Reason == "" {
		p.Outcome = outcome.Of(w.run.Status)
	}
	if p.freeze != nil {
		now := metav1.NewTime(w.now)
		s.Version, s.StartTime = p.freeze.Hash, &now
		s.Nodes = nil
		for _, n := range w.nodes() {
			s.Nodes = append(s.Nodes, v1alpha1.NodeStatus{Name: n.Name, State: v1alpha1.NodeWaiting})
		}
	}
	if p.progress != nil {
		s.Nodes = p.progress.nodes
		s.Progress = progressOf(w, p.progress)
	}
	if p.Settles() && s.Progress != nil {
		s.Progress.State, s.Progress.Pending = "", nil
	}
	p.Put(&s, w.run, w.now)
	return thrifty(w.run.Status, s)
}

// thrifty is a status to be written. Numbers of children that work change all the
// time: they are written when something else is.
func thrifty(had, want v1alpha1.RunStatus) v1alpha1.RunStatus {
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

// progressOf is how far the Run came, with the sums of its children.
func progressOf(w world, p *progress) *v1alpha1.RunProgress {
	had := v1alpha1.RunProgress{}
	if w.run.Status.Progress != nil {
		had = *w.run.Status.Progress
	}
	out := &v1alpha1.RunProgress{Version: task.Version, Pending: p.pending, Decided: p.decided, Result: p.result, Effects: had.Effects}
	if len(p.pending) > 0 {
		out.State = v1alpha1.ReasonAwaitingApproval
	}
	sums(w.children, out)
	// What a child used that somebody deleted was used all the same.
	floor(&out.Counts, had.Counts)
	floorUsage(&out.Usage, had.Usage)
	return out
}

// sums adds up what all children did. What something cost is known when it is of
// each that used anything.
func sums(children []*v1alpha1.Run, out *v1alpha1.RunProgress) {
	cost, priced := int64(0), true
	for _, c := range children {
		p := c.Status.Progress
		if p == nil {
			continue
		}
		if p.Effects != "" {
			out.Effects = p.Effects
		}
		out.Counts.Steps += p.Counts.Steps
		out.Counts.ModelCalls += p.Counts.ModelCalls
		out.Counts.ToolCalls += p.Counts.ToolCalls
		out.Counts.Errors += p.Counts.Errors
		out.Usage.InputTokens += p.Usage.InputTokens
		out.Usage.CacheReadTokens += p.Usage.CacheReadTokens
		out.Usage.CacheWriteTokens += p.Usage.CacheWriteTokens
		out.Usage.OutputTokens += p.Usage.OutputTokens
		out.Usage.ReasoningTokens += p.Usage.ReasoningTokens
		out.Usage.TotalTokens += p.Usage.TotalTokens
		out.Usage.DurationSeconds += p.Usage.DurationSeconds
		switch {
		case p.Usage.CostMicroUSD != nil:
			cost += *p.Usage.CostMicroUSD
		case p.Usage.InputTokens+p.Usage.OutputTokens > 0:
			priced = false
		}
	}
	if priced {
		out.Usage.CostMicroUSD = &cost
	}
}

// floor keeps counts from falling.
func floor(n *v1alpha1.Counts, had v1alpha1.Counts) {
	n.Steps = max(n.Steps, had.Steps)
	n.ModelCalls = max(n.ModelCalls, had.ModelCalls)
	n.ToolCalls = max(n.ToolCalls, had.ToolCalls)
	n.Errors = max(n.Errors, had.Errors)
}

// floorUsage keeps usage from falling, and writes its cost for people.
func floorUsage(u *v1alpha1.Usage, had v1alpha1.Usage) {
	u.InputTokens = max(u.InputTokens, had.InputTokens)
	u.CacheReadTokens = max(u.CacheReadTokens, had.CacheReadTokens)
	u.CacheWriteTokens = max(u.CacheWriteTokens, had.CacheWriteTokens)
	u.OutputTokens = max(u.OutputTokens, had.OutputTokens)
	u.ReasoningTokens = max(u.ReasoningTokens, had.ReasoningTokens)
	u.TotalTokens = max(u.TotalTokens, had.TotalTokens)
	u.DurationSeconds = max(u.DurationSeconds, had.DurationSeconds)
	if u.CostMicroUSD == nil {
		return
	}
	if had.CostMicroUSD != nil {
		cost := max(*u.CostMicroUSD, *had.CostMicroUSD)
		u.CostMicroUSD = &cost
	}
	u.Cost = task.Money(*u.CostMicroUSD)
}

// nodeStatus is what is recorded of a node; nil: nothing.
func nodeStatus(nodes []v1alpha1.NodeStatus, name string) *v1alpha1.NodeStatus {
	i := slices.IndexFunc(nodes, func(n v1alpha1.NodeStatus) bool { return n.Name == name })
	if i < 0 {
		return nil
	}
	return &nodes[i]
}

// stands is how a node stands, as it is recorded.
func stands(w world, node string) graph.Status {
	n := nodeStatus(w.run.Status.Nodes, node)
	if n == nil {
		return graph.Status{State: graph.Waiting}
	}
	s := graph.Status{State: graph.State(n.State), Reason: n.Reason}
	if c := n.Counts; c != nil {
		s.Total, s.Started = int(c.Total), int(c.Started)
		s.Succeeded, s.Failed, s.Skipped = int(c.Succeeded), int(c.Failed), int(c.Skipped)
	}
	return s
}

// nodeStatuses are how the nodes stand, to be recorded.
func (t *turn) nodeStatuses(next graph.Next) []v1alpha1.NodeStatus {
	var out []v1alpha1.NodeStatus
	for _, n := range t.nodes() {
		out = append(out, t.nodeStatus(n.Name, next.Nodes[n.Name]))
	}
	return out
}

func (t *turn) nodeStatus(name string, s graph.Status) v1alpha1.NodeStatus {
	had := nodeStatus(t.run.Status.Nodes, name)
	out := v1alpha1.NodeStatus{Name: name, State: v1alpha1.NodeState(s.State), Reason: task.Cut(s.Reason, maxNodeReason)}
	if had != nil {
		out.StartedAt, out.FinishedAt = had.StartedAt, had.FinishedAt
	}
	now := metav1.NewTime(t.now)
	worked := s.State == graph.Running || s.State == graph.Succeeded || s.State == graph.Failed
	if worked && out.StartedAt == nil {
		out.StartedAt = &now
	}
	if worked && s.State != graph.Running && out.FinishedAt == nil {
		out.FinishedAt = &now
	}
	if t.program.Node(name).Approval != nil || s.Total+s.Started+s.Succeeded+s.Failed+s.Skipped == 0 {
		return out
	}
	count := func(n int) int32 { return int32(min(max(n, 0), graph.MaxItems)) }
	out.Counts = &v1alpha1.NodeCounts{Total: count(s.Total), Started: count(s.Started), Succeeded: count(s.Succeeded), Failed: count(s.Failed), Skipped: count(s.Skipped)}
	return out
}
