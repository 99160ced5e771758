package run

import (
	"slices"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/run/children"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
)

// A Run shares its limits on tokens and cost with the child Runs that its agents ask for.

// defaultShare: an Agent without its own limits gets a quarter of each limit, so that several children and their parent
// can run at the same time.
const defaultShare = 4

// reservation is the result of reserving limits for a child Run.
type reservation int

const (
	reserved       reservation = iota
	mustWait                   // other children have reserved the rest, and may release some of it
	limitExhausted             // nothing is left, and no child can release any
)

// reserve reserves a part of the budget of a Run for a child Run: the limits of its Agent or, if no other child is
// active, at most everything that is left.
func reserve(s state, d delegation) (*children.Budget, children.Amounts, reservation) {
	b := s.budget()
	grant, enough := b.Reserve(wantedBy(s.agents[d.Agent], b.Limit))
	switch {
	case enough:
		return b, grant, reserved
	case b.Active > 0:
		return b, grant, mustWait
	default:
		return b, grant, limitExhausted
	}
}

// wantedBy returns the most that a child Run of an Agent may use. The Agent is nil if it does not exist yet.
func wantedBy(agent *v1alpha1.Agent, whole children.Amounts) children.Amounts {
	var own v1alpha1.AgentLimits
	if agent != nil {
		own = agent.Spec.Limits
	}
	limits := snapshot.LimitsOf(own)
	want := children.Amounts{children.Cost: limits.CostMicroUSD}
	if own.Tokens != nil {
		want[children.Tokens] = limits.Tokens
	}
	for r := range children.Resources {
		if want[r] == 0 {
			want[r] = max(whole[r]/defaultShare, 1)
		}
		want[r] = min(want[r], whole[r])
	}
	return want
}

// budget returns the budget of a Run with its own usage, the reservations of active children, and the usage of finished
// children that the runner has not charged yet.
func (s state) budget() *children.Budget {
	l := withGrants(s.limits().task, s.granted)
	b := children.NewBudget(children.Amounts{children.Tokens: l.Tokens, children.Cost: l.CostMicroUSD})
	waitsFor := s.delegations(s.progress())
	var finished, unread children.Amounts // unread: of those whose results the runner waits for
	for i := range s.children {
		child := &s.children[i]
		reservation := children.LimitsOf(child.Spec.Limits)
		if !runstatus.IsFinished(child) {
			b.Charge(child, reservation)
			continue
		}
		if p := child.Status.Progress; p != nil {
			finished = finished.Plus(children.UsageOf(p))
		}
		if slices.ContainsFunc(waitsFor, func(d delegation) bool { return d.child == child }) {
			unread = unread.Plus(children.UsedBy(child, reservation))
		}
	}
	if p := s.run.Status.Progress; p != nil {
		// It is not known whether a runner that was resumed, or whose call was cancelled, has read a result: only its
		// charges show that.
		charged, known := children.ChildUsageOf(p)
		if known {
			unread = unread.Max(finished.Minus(charged))
		}
		b.Use(children.UsageOf(p).Max(charged)) // if its own cost is unknown, that of its children counts
	}
	b.Use(unread)
	return b
}

// childLimits returns the limits of a child Run, including how deep its agents may delegate.
func childLimits(s state, b *children.Budget, grant children.Amounts) *v1alpha1.Limits {
	depth := int32(max(0, min(s.limits().task.Depth, maxDepth)))
	return b.LimitsFor(&v1alpha1.Limits{Depth: &depth}, grant)
}
