package run

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/stored"
	"github.com/deckhand-dev/deckhand/internal/runstatus"
)

// Runs of a workflow may have one workspace along a branch of it. The claim then
// belongs to the workflow's Run, which is their parent: whichever of them is first
// makes it, and it goes when the parent has finished.

// SharedClaim is the name of the claim that children of a Run share whose files
// begin with the node root.
func SharedClaim(parent *v1alpha1.Run, root string) string {
	return claimNamed(parent.Name, string(parent.UID)+"/"+root)
}

// RetentionExpired says whether a claim that belongs to a finished Run has stayed long
// enough, or else how long it stays yet. Who frees it waits until it is not
// [Occupied] any more.
func RetentionExpired(run *v1alpha1.Run, claim *corev1.PersistentVolumeClaim, now time.Time) (done bool, left time.Duration) {
	if claim.DeletionTimestamp != nil {
		return false, 0
	}
	switch stored.Retain(claim.Annotations[v1alpha1.AnnotationRetain]) {
	case stored.RetainNever:
		return true, 0
	case stored.RetainAlways:
	case stored.RetainOnFailure:
		if runstatus.OutcomeOf(run.Status).Status == metav1.ConditionTrue {
			return true, 0
		}
	}
	left = retention(claim, defaultClaimRetention) - runstatus.SinceCompletion(run, now)
	return left <= 0, max(left, 0)
}

// Occupied says whether a pod that may still do something has the claim.
func Occupied(claim string, pods []corev1.Pod) bool {
	return slices.ContainsFunc(pods, func(pod corev1.Pod) bool {
		return alive(&pod) && slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim
		})
	})
}

// sharing is the claim that a Run has together with others, and their parent;
// empty: it shares none. The annotation is believed of what a Run controls alone.
func sharing(run *v1alpha1.Run) (claim string, parent *metav1.OwnerReference) {
	claim, parent = run.Annotations[v1alpha1.AnnotationVolumeClaim], partOf(run)
	if parent == nil || !strings.HasPrefix(claim, claimPrefix) {
		return "", nil
	}
	return claim, parent
}

// shares says whether the claim of a Run is not its own alone.
func (w world) shares() bool {
	claim, _ := sharing(w.run)
	return claim != ""
}

// holder owns the claim of a Run: its parent where that is shared, else the Run.
func holder(run *v1alpha1.Run) metav1.OwnerReference {
	if _, parent := sharing(run); parent != nil {
		return *metav1.NewControllerRef(&metav1.ObjectMeta{Name: parent.Name, UID: parent.UID}, v1alpha1.GroupVersion.WithKind("Run"))
	}
	return *metav1.NewControllerRef(run, v1alpha1.GroupVersion.WithKind("Run"))
}

// holds says whether a claim is one that a Run may have.
func holds(run *v1alpha1.Run, claim *corev1.PersistentVolumeClaim) bool {
	is := metav1.GetControllerOf(claim)
	return is != nil && is.UID == holder(run).UID
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
	claim, parent := sharing(run)
	var list v1alpha1.RunList
	err := r.client.List(ctx, &list, client.InNamespace(run.Namespace), client.MatchingLabels{v1alpha1.LabelWorkflowRun: parent.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return false, fmt.Errorf("listing Runs: %w", err)
	}
	return slices.ContainsFunc(list.Items, func(other v1alpha1.Run) bool {
		at, of := sharing(&other)
		return at == claim && of.UID == parent.UID && other.UID != run.UID && changedFiles(other.Status)
	}), nil
}

func changedFiles(s v1alpha1.RunStatus) bool {
	return s.Attempt != nil && s.Attempt.VolumeClaim != "" && s.Progress != nil && s.Progress.Effects == v1alpha1.EffectsBegun
}
