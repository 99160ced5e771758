package run

import (
	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/children"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
)

// childStateChanges stops children when their parent ends or is stopped, and pauses them with
// it.
func childStateChanges(s state, p plan) []children.StateChange {
	if !s.run.DeletionTimestamp.IsZero() || p.deleteRun {
		return nil // owner references do the rest
	}
	stop := p.settles() || runstatus.IsFinished(s.run) || s.run.Spec.DesiredState == v1alpha1.DesiredStopped
	var out []children.StateChange
	for i := range s.children {
		child := &s.children[i]
		change, needed := children.Pause(child, wantsPause(s))
		if stop || isUnwanted(s, child) {
			change, needed = children.Stop(child)
		}
		if needed {
			out = append(out, change)
		}
	}
	return out
}

// isUnwanted reports whether a child should stop: the call that requested it was cancelled, or it was requested by an
// earlier attempt and the current attempt uses the id for another request.
func isUnwanted(s state, child *v1alpha1.Run) bool {
	for _, d := range s.delegations(s.progress()) {
		if d.child == child {
			return d.Cancelled || child.Annotations[v1alpha1.AnnotationDigest] != d.Digest
		}
	}
	return false
}
