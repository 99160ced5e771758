package run

import (
	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/run/children"
)

// inputInvalid ends a Run whose input or limits do not fit its Agent, before a pod exists.
func inputInvalid(s state) (plan, bool) {
	if s.attempt() > 0 {
		return plan{}, false
	}
	p := snapshot.CheckRun(s.run.Spec, s.revision.Snapshot.Agent)
	if p == nil && children.ParentOf(s.run) == nil { // the operator itself chose the limits of a child Run
		p = snapshot.CheckLimits(s.run.Spec.Limits, snapshot.MostOfRevision(s.revision), "Agent "+s.run.Spec.Agent)
	}
	if p == nil {
		p = snapshot.CheckCost(s.run.Spec.Limits, s.revision.Snapshot.Models)
	}
	switch {
	case p == nil:
		return plan{}, false
	case p.Reason == v1alpha1.ReasonMisconfigured:
		return failure(p.Reason, p.Message+"; create another Run"), true
	default:
		return failure(p.Reason, p.Message), true
	}
}
