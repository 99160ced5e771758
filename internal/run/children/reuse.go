package children

import (
	"context"
	"encoding/json"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// InputHash returns the hash of what decides the work of a child Run of a workflow: its prompt, input, user and
// revision. It is empty if the input has no canonical form: such a Run equals no other.
func InputHash(spec v1alpha1.RunSpec, revision string) string {
	input, err := snapshot.CanonicalInput(spec)
	if err != nil {
		return ""
	}
	all, _ := json.Marshal([]string{spec.Prompt, string(input), spec.User, revision}) // strings always encode
	return task.Hash(all)
}

// ReuseOf returns the UID of the Run whose result a child Run has; empty: it works itself. An admission policy lets
// only the operator write the annotation, and it counts only if a Run is the controller.
func ReuseOf(run *v1alpha1.Run) string {
	if ParentOf(run) == nil || run.Spec.ContinueFrom == nil {
		return ""
	}
	return run.Annotations[v1alpha1.AnnotationReuseOf]
}

// ReusedRun returns the Run whose result a child Run has; nil: it has none, or that Run was deleted.
func ReusedRun(ctx context.Context, from client.Reader, run *v1alpha1.Run) (*v1alpha1.Run, error) {
	uid := ReuseOf(run)
	if uid == "" || runstatus.IsFinished(run) {
		return nil, nil
	}
	var found v1alpha1.Run
	err := from.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: run.Spec.ContinueFrom.Run}, &found)
	switch {
	case apierrors.IsNotFound(err) || err == nil && string(found.UID) != uid:
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("getting Run %s: %w", run.Spec.ContinueFrom.Run, err)
	}
	found.Status.Progress = untrusted.Progress(found.Status.Progress)
	return &found, nil
}

// Reuse returns how a child Run ends that has the result of another, and its progress, which has used nothing. Without
// the other, the Run fails.
func Reuse(run, reused *v1alpha1.Run) (runstatus.Outcome, *v1alpha1.RunProgress) {
	if reused == nil || reused.Status.Progress == nil || reused.Status.Progress.Result == nil {
		return runstatus.Outcome{
			Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonNothingToContinue,
			Message: fmt.Sprintf("Run %s, whose result was to be reused, was deleted. Retry the Run of the workflow again: the node runs then", run.Spec.ContinueFrom.Run),
		}, nil
	}
	outcome := runstatus.Outcome{
		Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReused,
		Message: fmt.Sprintf("The result of Run %s, which did the same work: prompt, input, user and revision are equal", reused.Name),
	}
	return outcome, &v1alpha1.RunProgress{Version: task.Version, Result: reused.Status.Progress.Result.DeepCopy()}
}
