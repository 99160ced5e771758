package run

import (
	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/children"
	"github.com/deckhand-dev/deckhand/internal/runstatus"
)

// steered are the child Runs that are to do something else: they stop when their
// parent ends or is stopped, and hold when it does. One that a person paused by
// itself stays so.
func steered(w world, p plan) []children.StateChange {
	if !w.run.DeletionTimestamp.IsZero() || p.forget {
		return nil // owner references do the rest
	}
	stop := p.settles() || runstatus.IsFinished(w.run) || w.run.Spec.DesiredState == v1alpha1.DesiredStopped
	var out []children.StateChange
	for i := range w.children {
		child := &w.children[i]
		change, needed := children.Pause(child, wantsPause(w))
		if stop || forsaken(w, child) {
			change, needed = children.Stop(child)
		}
		if needed {
			out = append(out, change)
		}
	}
	return out
}

// forsaken says whether a child Run does what an earlier attempt asked for, and
// this one asks for something else under the same id: nobody reads its result.
func forsaken(w world, child *v1alpha1.Run) bool {
	for _, d := range w.delegations(w.progress()) {
		if d.child == child {
			return child.Annotations[v1alpha1.AnnotationDigest] != d.Digest
		}
	}
	return false
}
