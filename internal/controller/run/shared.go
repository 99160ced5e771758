package run

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/runnerpod"
)

// Runs of a workflow may have one workspace along a branch of it. The claim then
// belongs to the workflow's Run, which is their parent: whichever of them is first
// makes it, and it goes when the parent has finished.

// shares says whether the claim of a Run is not its own alone.
func (w world) shares() bool {
	claim, _ := runnerpod.SharedVolumeClaim(w.run)
	return claim != ""
}

// volume reads the claim of a Run and, where it was deleted and others share it, what
// they did with it. That a claim is gone is believed only of the API server: the cache
// may not show yet that it was created.
func (r *Reconciler) volume(ctx context.Context, w *world) error {
	var err error
	w.claim, err = claimed(ctx, r.client, w.run)
	if err != nil || w.run.Status.CompletionTime != nil || !w.claimDeleted() {
		return err
	}
	if w.shares() {
		if w.filesLost, err = r.worked(ctx, w.run); err != nil {
			return err
		}
	}
	a := w.run.Status.Attempt
	if created := a.Number > 1 || a.PodUID != "" || w.filesLost; w.claim != nil || !created {
		return nil
	}
	w.claim, err = claimed(ctx, r.live, w.run)
	w.filesLost = w.filesLost && w.claimDeleted()
	return err
}

// worked says whether another Run has begun to change what is on the claim that it
// shares with this one.
func (r *Reconciler) worked(ctx context.Context, run *v1alpha1.Run) (bool, error) {
	claim, parent := runnerpod.SharedVolumeClaim(run)
	var list v1alpha1.RunList
	err := r.client.List(ctx, &list, client.InNamespace(run.Namespace), client.MatchingLabels{v1alpha1.LabelWorkflowRun: parent.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return false, fmt.Errorf("listing Runs: %w", err)
	}
	return slices.ContainsFunc(list.Items, func(other v1alpha1.Run) bool {
		at, of := runnerpod.SharedVolumeClaim(&other)
		return at == claim && of.UID == parent.UID && other.UID != run.UID && changedFiles(other.Status)
	}), nil
}

func changedFiles(s v1alpha1.RunStatus) bool {
	return s.Attempt != nil && s.Attempt.VolumeClaim != "" && s.Progress != nil && s.Progress.Effects == v1alpha1.EffectsBegun
}
