package workflowrun

import (
	"time"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/children"
)

// finallyDuration is the default duration of finally or, if the Workflow has no duration, of each of its nodes.
const finallyDuration = int64(10 * time.Minute / time.Second)

// finallyShare: by default finally gets a tenth of each limit.
const finallyShare = 10

// forFinally returns the reservation for finally: as the Workflow sets it, by default 10 minutes, at most half of
// limits.duration, and a tenth of the other limits. Without limits.duration, each node of finally has 10 minutes. It is
// never more than the limits, which a Run may have lowered.
func forFinally(whole children.Amounts, spec v1alpha1.WorkflowSpec) children.Amounts {
	out := children.WorkflowLimits(spec.FinallyLimits.WorkflowLimits())
	for d := range children.Resources {
		switch {
		case out[d] > 0 && whole[d] > 0:
			out[d] = min(out[d], whole[d])
		case out[d] > 0:
		case d == children.Duration && whole[d] > 0:
			out[d] = max(1, min(finallyDuration, whole[d]/2))
		case d == children.Duration:
			out[d] = finallyDuration * int64(max(1, len(spec.Finally)))
		case whole[d] > 0:
			out[d] = max(1, whole[d]/finallyShare)
		}
	}
	return out
}

// wantedBy returns how much a node may use at most. If no duration of finally is set, each of its nodes has its own.
func wantedBy(s state, main *children.Budget, n v1alpha1.Node) children.Amounts {
	want := children.Lowest(targetLimits(s, string(n.Agent), string(n.Workflow)), children.LimitsOf(n.Limits))
	if s.isFinally(n.Name) && !main.Bounded[children.Duration] && children.WorkflowLimits(s.revision.Spec.FinallyLimits.WorkflowLimits())[children.Duration] == 0 {
		return children.Lowest(want, children.Amounts{children.Duration: finallyDuration})
	}
	return want
}
