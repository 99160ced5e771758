package run

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/runstatus"
)

// A course is what a child Run is told to do.
type course struct {
	child *v1alpha1.Run
	to    v1alpha1.DesiredState
	// because is the annotation that says whose pause it is; nil takes it away.
	because *string
}

// steered are the child Runs that are to do something else: they stop when their
// parent ends or is stopped, and hold when it does. One that a person paused by
// itself stays so.
func steered(w world, p plan) []course {
	if !w.run.DeletionTimestamp.IsZero() || p.forget {
		return nil // owner references do the rest
	}
	var out []course
	yes := "true"
	stop := p.settles() || isOver(w.run) || w.run.Spec.DesiredState == v1alpha1.DesiredStopped
	for i := range w.children {
		child := &w.children[i]
		is := child.Spec.DesiredState
		_, ours := child.Annotations[v1alpha1.AnnotationPaused]
		switch {
		case isOver(child), !child.DeletionTimestamp.IsZero(), is == v1alpha1.DesiredStopped:
		case stop, forsaken(w, child):
			out = append(out, course{child: child, to: v1alpha1.DesiredStopped})
		case wantsPause(w) && is != v1alpha1.DesiredPaused:
			out = append(out, course{child: child, to: v1alpha1.DesiredPaused, because: &yes})
		case !wantsPause(w) && ours:
			out = append(out, course{child: child, to: v1alpha1.DesiredRunning})
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

// steer tells child Runs what to do. What was told already changes nothing.
func (r *Reconciler) steer(ctx context.Context, courses []course) error {
	for _, c := range courses {
		patch := encode(map[string]any{
			"metadata": map[string]any{"uid": c.child.UID, "annotations": map[string]*string{v1alpha1.AnnotationPaused: c.because}},
			"spec":     map[string]any{"desiredState": c.to},
		})
		err := r.client.Patch(ctx, c.child.DeepCopy(), client.RawPatch(types.MergePatchType, patch))
		if runstatus.IgnoreFinished(err) != nil {
			return fmt.Errorf("patching Run %s: %w", c.child.Name, err)
		}
	}
	return nil
}
