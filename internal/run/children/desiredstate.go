package children

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
)

// StateChange is a desired state to set on a child Run.
type StateChange struct {
	Child *v1alpha1.Run
	To    v1alpha1.DesiredState
	// PausedByParent marks a pause as the parent's, so that the parent ends it.
	PausedByParent bool
}

// Stop returns the change that stops a child; false: it has ended, or is to stop already.
func Stop(child *v1alpha1.Run) (StateChange, bool) {
	if runstatus.IsFinished(child) || !child.DeletionTimestamp.IsZero() || child.Spec.DesiredState == v1alpha1.DesiredStopped {
		return StateChange{}, false
	}
	return StateChange{Child: child, To: v1alpha1.DesiredStopped}, true
}

// Pause returns the change that pauses a child with its parent, or resumes it; false:
// there is none. A child that a user paused stays paused. Which pause is the parent's is
// recorded on the child: the status of the parent may be older.
func Pause(child *v1alpha1.Run, paused bool) (StateChange, bool) {
	_, byParent := child.Annotations[v1alpha1.AnnotationPaused]
	switch state := child.Spec.DesiredState; {
	case runstatus.IsFinished(child), !child.DeletionTimestamp.IsZero(), state == v1alpha1.DesiredStopped:
	case paused && state != v1alpha1.DesiredPaused:
		return StateChange{Child: child, To: v1alpha1.DesiredPaused, PausedByParent: true}, true
	case !paused && byParent:
		return StateChange{Child: child, To: v1alpha1.DesiredRunning}, true
	}
	return StateChange{}, false
}

// PausedMessage returns the message of a paused Run: what paused it, and how to resume it.
func PausedMessage(run *v1alpha1.Run) string {
	if _, byParent := run.Annotations[v1alpha1.AnnotationPaused]; byParent {
		if parent := ParentOf(run); parent != nil {
			return fmt.Sprintf("Paused together with Run %s, which it is a part of. Resume that Run", parent.Name)
		}
	}
	return fmt.Sprintf("Paused by spec.desiredState. To resume: kubectl deckhand resume %s, or set it to Running", run.Name)
}

// SetStates sets the desired states of children. That one has ended is success.
func SetStates(ctx context.Context, c client.Client, changes []StateChange) error {
	for _, change := range changes {
		var mark *string // nil removes it
		if change.PausedByParent {
			yes := "true"
			mark = &yes
		}
		child := change.Child
		patch, err := json.Marshal(map[string]any{
			"metadata": map[string]any{"uid": child.UID, "annotations": map[string]*string{v1alpha1.AnnotationPaused: mark}}, // no other Run of the name
			"spec":     map[string]any{"desiredState": change.To},
		})
		if err != nil {
			return fmt.Errorf("encoding a patch: %w", err)
		}
		patched := &v1alpha1.Run{}
		patched.Namespace, patched.Name = child.Namespace, child.Name
		if err := c.Patch(ctx, patched, client.RawPatch(types.MergePatchType, patch)); runstatus.IgnoreFinished(err) != nil {
			return fmt.Errorf("setting the desired state of Run %s to %s: %w", child.Name, change.To, err)
		}
	}
	return nil
}
