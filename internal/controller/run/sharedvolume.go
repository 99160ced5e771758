package run

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
)

// Runs of a workflow may share a workspace along a branch of the graph. The claim then belongs to their parent, the
// workflow's Run: the first of them creates it, and it is deleted after the parent has finished.

// sharesVolume reports whether other Runs use the volume of the Run.
func (s state) sharesVolume() bool {
	claim, _ := runnerpod.SharedVolumeClaim(s.run)
	return claim != ""
}

// observe reads the volume of a Run and, if a shared volume was deleted, whether other Runs had changed its files. Only
// the API server can confirm that it does not exist: the cache may be late.
func (v volumes) observe(ctx context.Context, s *state) error {
	err := readVolume(ctx, v.client, s)
	if err != nil || s.run.Status.CompletionTime != nil || !s.volumeDeleted() {
		return err
	}
	if s.sharesVolume() {
		if s.sharedFilesLost, err = v.othersChangedFiles(ctx, s.run); err != nil {
			return err
		}
	}
	a := s.run.Status.Attempt
	if created := a.Number > 1 || a.PodUID != "" || s.sharedFilesLost; s.volume != nil || !created {
		return nil
	}
	err = readVolume(ctx, v.live, s)
	s.sharedFilesLost = s.sharedFilesLost && s.volumeDeleted()
	return err
}

// othersChangedFiles reports whether another Run has changed files of the shared volume.
func (v volumes) othersChangedFiles(ctx context.Context, run *v1alpha1.Run) (bool, error) {
	claim, parent := runnerpod.SharedVolumeClaim(run)
	var list v1alpha1.RunList
	err := v.client.List(ctx, &list, client.InNamespace(run.Namespace), client.MatchingLabels{v1alpha1.LabelWorkflowRun: parent.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return false, fmt.Errorf("listing Runs: %w", err)
	}
	return slices.ContainsFunc(list.Items, func(other v1alpha1.Run) bool {
		at, of := runnerpod.SharedVolumeClaim(&other)
		return at == claim && of.UID == parent.UID && other.UID != run.UID && changedFiles(other.Status)
	}), nil
}

func changedFiles(status v1alpha1.RunStatus) bool {
	return status.Attempt != nil && status.Attempt.VolumeClaim != "" && status.Progress != nil && status.Progress.Effects == v1alpha1.EffectsBegun
}
