// Package children manages child Runs, of workflows and of agents: it names and creates them, sets their desired
// states, and divides a budget among them.
package children

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// Child is a child Run to create.
type Child struct {
	Run *v1alpha1.Run
	// Names are tried in turn: another Run may have the first.
	Names []string
	// Is reports whether a Run that exists is this child.
	Is func(existing *v1alpha1.Run) bool
}

// NamesTakenError means that other Runs have all possible names of a child.
type NamesTakenError struct{ Names []string }

func (e *NamesTakenError) Error() string {
	return fmt.Sprintf("the names %s are used by Runs that are not part of this one", strings.Join(e.Names, " and "))
}

// Create creates a child, or finds the existing one. It asks the API server about an existing Run of the name, because
// a cache may be late.
func Create(ctx context.Context, c client.Client, live client.Reader, child Child) (*v1alpha1.Run, error) {
	for _, name := range child.Names {
		run := child.Run.DeepCopy()
		run.Name = name
		err := c.Create(ctx, run)
		if !apierrors.IsAlreadyExists(err) {
			return run, err
		}
		var existing v1alpha1.Run
		if err := live.Get(ctx, client.ObjectKeyFromObject(run), &existing); err != nil {
			return nil, err
		}
		if child.Is(&existing) {
			return &existing, nil
		}
	}
	return nil, &NamesTakenError{child.Names}
}

// MaxName is the maximum length of the name of a Run.
const MaxName = 63

// HashedName returns a name that ends in the first digits of a hash of unique. It cuts the name if both do not fit.
func HashedName(name, unique string, digits int) string {
	hash := "-" + task.Hash([]byte(unique))[:digits]
	return strings.TrimRight(name[:min(len(name), MaxName-len(hash))], "-.") + hash
}

// ParentOf returns the parent of a Run, or nil. An admission policy keeps users from creating Runs with a parent.
func ParentOf(run *v1alpha1.Run) *metav1.OwnerReference {
	owner := metav1.GetControllerOf(run)
	if owner == nil || owner.Kind != "Run" || !strings.HasPrefix(owner.APIVersion, v1alpha1.GroupVersion.Group+"/") {
		return nil
	}
	return owner
}

// FixedRevision returns the hash of the revision that a child Run was created for; empty: it runs
// the current one. The annotation counts only if a Run is the controller.
func FixedRevision(run *v1alpha1.Run) string {
	if ParentOf(run) == nil {
		return ""
	}
	return run.Annotations[v1alpha1.AnnotationRevisionHash]
}

// maxLineage is how many ancestors are looked up: one more than there can be.
const maxLineage = 6

// Ancestor is a Run that another is a part of.
type Ancestor struct {
	UID types.UID
	Run *v1alpha1.Run // nil: gone
}

// Ancestors returns the Runs that a Run is a part of, the nearest first.
func Ancestors(ctx context.Context, from client.Reader, run *v1alpha1.Run) ([]Ancestor, error) {
	var out []Ancestor
	for run != nil && len(out) < maxLineage {
		owner := ParentOf(run)
		if owner == nil {
			return out, nil
		}
		next := Ancestor{UID: owner.UID}
		var found v1alpha1.Run
		err := from.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: owner.Name}, &found)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("getting Run %s: %w", owner.Name, err)
		case found.UID == owner.UID:
			next.Run = &found
		}
		out, run = append(out, next), next.Run
	}
	return out, nil
}

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

// Pause returns the change that pauses a child together with its parent, or resumes it; false: there is none. A child
// that a user paused stays paused. A pause by the parent is recorded on the child, because the status of the parent may
// be older.
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

// PausedMessage returns the message of a paused Run: whether a user or its parent paused it, and how to resume it.
func PausedMessage(run *v1alpha1.Run) string {
	if _, byParent := run.Annotations[v1alpha1.AnnotationPaused]; byParent {
		if parent := ParentOf(run); parent != nil {
			return fmt.Sprintf("Paused together with Run %s, which it is a part of. Resume that Run", parent.Name)
		}
	}
	return fmt.Sprintf("Paused by spec.desiredState. To resume: kubectl deckhand resume %s, or set it to Running", run.Name)
}

// SetStates sets the desired states of children. It ignores children that have ended.
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
