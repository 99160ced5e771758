package run

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/apierr"
	"github.com/deckhand-dev/deckhand/internal/runnerpod"
)

// claimed reads the claim of a Run; nil: it has none, or somebody else's has the
// name.
func claimed(ctx context.Context, from client.Reader, run *v1alpha1.Run) (*corev1.PersistentVolumeClaim, error) {
	if run.Status.Attempt == nil || run.Status.Attempt.VolumeClaim == "" {
		return nil, nil //nolint:nilnil // no claim is a fact, not a fault
	}
	var claim corev1.PersistentVolumeClaim
	err := from.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: run.Status.Attempt.VolumeClaim}, &claim)
	if apierrors.IsNotFound(err) || err == nil && !runnerpod.OwnsVolume(run, &claim) {
		return nil, nil //nolint:nilnil // the same
	}
	if err != nil {
		return nil, fmt.Errorf("getting PersistentVolumeClaim %s: %w", run.Status.Attempt.VolumeClaim, err)
	}
	return &claim, nil
}

// createVolume creates the volume of a Run before its first pod.
func (r *Reconciler) createVolume(ctx context.Context, w world) (facts, error) {
	if w.run.Status.Attempt.VolumeClaim == "" || w.claim != nil {
		return facts{}, nil
	}
	volume := runnerpod.NewVolumeClaim(w.run, w.version)
	err := r.client.Create(ctx, volume)
	switch {
	case err == nil:
		return facts{}, nil
	case apierrors.IsAlreadyExists(err):
		return r.findVolume(ctx, w, volume)
	case isAnswer(err):
		return facts{volumeRefused: err}, nil
	}
	return facts{}, fmt.Errorf("creating PersistentVolumeClaim %s: %w", volume.Name, err)
}

// findVolume reads the volume that has the name of a Run's: its own, which the cache does
// not show yet, or another.
func (r *Reconciler) findVolume(ctx context.Context, w world, volume *corev1.PersistentVolumeClaim) (facts, error) {
	var found corev1.PersistentVolumeClaim
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(volume), &found); err != nil {
		return facts{}, fmt.Errorf("getting PersistentVolumeClaim %s: %w", volume.Name, err)
	}
	return facts{
		volumeTaken:   !runnerpod.OwnsVolume(w.run, &found),
		volumeDiffers: !slices.Equal(found.Spec.AccessModes, volume.Spec.AccessModes),
	}, nil
}

// volumeNotCreated is what follows if the volume of the attempt could not be created.
func volumeNotCreated(w world) (plan, bool) {
	name := w.run.Status.Attempt.VolumeClaim
	switch f := w.facts; {
	case f.volumeRefused != nil:
		return refusedClaim(w, f.volumeRefused), true
	case f.volumeTaken: // what is on it is not to be trusted
		return retriedCreate(w, v1alpha1.ReasonPending, fmt.Sprintf("PersistentVolumeClaim %s exists, but this Run did not create it. Delete it; the Run then continues", name)), true
	case f.volumeDiffers: // the pod is built again once the cache shows the volume
		return waiting(v1alpha1.ReasonStarting, "Another Run has made PersistentVolumeClaim "+name, time.Second), true
	}
	return plan{}, false
}

// refusedClaim says what follows when the cluster refuses a claim.
func refusedClaim(w world, err error) plan {
	text := apierr.Text(err)
	switch apierr.Classify(err) { //nolint:exhaustive // see isAnswer
	case apierr.Terminating:
		return waiting(v1alpha1.ReasonPending, "The namespace is being deleted", maxRefusedWait)
	case apierr.Quota:
		return retriedCreate(w, v1alpha1.ReasonQuotaExceeded, "The namespace's ResourceQuota has no room for the volume of the Run. Raise it, or delete other PersistentVolumeClaims: "+text)
	case apierr.Admission:
		return failure(v1alpha1.ReasonAdmissionDenied, "Admission refused the volume of the Run. Change spec.workspace of the Agent, or the policy: "+text)
	case apierr.Invalid:
		return failure(v1alpha1.ReasonMisconfigured, "The volume of the Run is invalid. Correct spec.workspace of the Agent: "+text)
	default:
		return retriedCreate(w, v1alpha1.ReasonPending, "The API server refused the volume of the Run: "+text)
	}
}

// claimDeleted reports whether the claim of the current attempt is not there, or is
// being deleted. Kubernetes keeps it as long as a pod uses it, but starts no other pod
// on it.
func (w world) claimDeleted() bool {
	a := w.run.Status.Attempt
	return a != nil && a.VolumeClaim != "" && (w.claim == nil || w.claim.DeletionTimestamp != nil)
}

// volumeLost fails a Run whose claim was deleted after it, or another that shares it,
// had begun to change things: the journal is gone, so another attempt could repeat them.
func volumeLost(w world) (plan, bool) {
	a := w.run.Status.Attempt
	switch {
	case !w.claimDeleted():
		return plan{}, false
	case w.filesLost:
		return failure(v1alpha1.ReasonPodLost, fmt.Sprintf("PersistentVolumeClaim %s was deleted with files that other Runs of the workflow had changed, so the Run does not start with an empty one", a.VolumeClaim)), true
	case a.Number == 1 || !w.effects():
		return plan{}, false
	}
	return failure(v1alpha1.ReasonPodLost, fmt.Sprintf("PersistentVolumeClaim %s was deleted with the files and the journal. The agent had already changed something, so the Run is not started again", a.VolumeClaim)), true
}

// volumeLeaves waits until a claim that is being deleted is gone, because the next one
// has the same name. Pods that ended would keep it.
func volumeLeaves(w world) (plan, bool) {
	if w.claim == nil || w.claim.DeletionTimestamp == nil {
		return plan{}, false
	}
	p := retriedCreate(w, v1alpha1.ReasonPending, fmt.Sprintf("PersistentVolumeClaim %s is being deleted. The Run then continues with a new one", w.claim.Name))
	if !p.settles() {
		p.remove = present(w.pods)
	}
	return p, true
}

// volumeLostBeforeStart is what follows for a pod that does not start because its
// claim was deleted: it never will. Another one replaces it, unless the Run is over.
func volumeLostBeforeStart(w world) (plan, bool) {
	if !w.claimDeleted() || unschedulable(w.pod()) == "" && w.trouble == "" {
		return plan{}, false
	}
	if p, lost := volumeLost(w); lost {
		return p, true
	}
	a := w.run.Status.Attempt
	p := waiting(v1alpha1.ReasonRetrying, fmt.Sprintf("Deleting pod %s, which cannot start: PersistentVolumeClaim %s was deleted", a.Pod, a.VolumeClaim), 0)
	p.remove = present(w.pods)
	return p, true
}

// present are the pods that are not being deleted.
func present(pods []corev1.Pod) []corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
}

// outlived says whether the claim of a finished Run has stayed long enough, or
// else how long it stays yet. One that is shared is not this Run's to free.
func outlived(w world) (done bool, left time.Duration) {
	if w.claim == nil || w.shares() {
		return false, 0
	}
	return runnerpod.RetentionExpired(w.run, w.claim, w.now)
}
