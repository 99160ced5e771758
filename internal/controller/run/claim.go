package run

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/apierr"
	"github.com/deckhand-dev/deckhand/internal/revision/stored"
	"github.com/deckhand-dev/deckhand/internal/snapshot"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// claimPrefix begins the names of claims. An admission policy knows it: only the
// operator makes such claims, and pods that may write to them.
const claimPrefix = "deckhand-run-"

// claimName is the name of the claim that a Run's files and journal are on. The
// UID is in it: a Run never meets what a namesake before it left.
func claimName(run *v1alpha1.Run) string {
	if claim, _ := sharing(run); claim != "" {
		return claim
	}
	return claimNamed(run.Name, string(run.UID))
}

// claimNamed is the name of the claim of a Run, which what is hashed tells from
// others.
func claimNamed(name, unique string) string {
	hash := "-" + task.Hash([]byte(unique))[:8]
	if most := 63 - len(claimPrefix) - len(hash); len(name) > most {
		name = strings.TrimRight(name[:most], "-.")
	}
	return claimPrefix + name + hash
}

// Defaults of Workspace, as its godoc promises.
const (
	defaultSize           = "1Gi"
	defaultClaimRetention = 24 * time.Hour
)

// newVolumeClaim returns the volume that the current attempt of a Run mounts.
func newVolumeClaim(run *v1alpha1.Run, v *snapshot.Version) *corev1.PersistentVolumeClaim {
	ws := v.Agent.Workspace
	retention := defaultClaimRetention
	if ws.Retention != nil {
		retention = ws.Retention.Duration
	}
	mode := cmp.Or(ws.AccessMode, corev1.ReadWriteOnce)
	owner := holder(run)
	return &corev1.PersistentVolumeClaim{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PersistentVolumeClaim"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: run.Namespace,
			Name:      run.Status.Attempt.VolumeClaim,
			Labels: map[string]string{
				"app.kubernetes.io/name":       "deckhand-runner",
				"app.kubernetes.io/managed-by": "deckhand",
				v1alpha1.LabelRun:              owner.Name,
				v1alpha1.LabelAgent:            snapshot.Label(v.Agent.Name),
			},
			Annotations: map[string]string{
				v1alpha1.AnnotationRetain:    string(ws.Retain),
				v1alpha1.AnnotationRetention: retention.String(),
			},
			OwnerReferences: []metav1.OwnerReference{owner},
		},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes:      []corev1.PersistentVolumeAccessMode{mode},
			StorageClassName: ws.StorageClassName,
			Resources:        corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: sizeOf(ws)}},
		},
	}
}

func sizeOf(ws stored.Workspace) resource.Quantity {
	if ws.Size == nil {
		return resource.MustParse(defaultSize)
	}
	return *ws.Size
}

// claimed reads the claim of a Run; nil: it has none, or somebody else's has the
// name.
func claimed(ctx context.Context, from client.Reader, run *v1alpha1.Run) (*corev1.PersistentVolumeClaim, error) {
	if run.Status.Attempt == nil || run.Status.Attempt.VolumeClaim == "" {
		return nil, nil //nolint:nilnil // no claim is a fact, not a fault
	}
	var claim corev1.PersistentVolumeClaim
	err := from.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: run.Status.Attempt.VolumeClaim}, &claim)
	if apierrors.IsNotFound(err) || err == nil && !holds(run, &claim) {
		return nil, nil //nolint:nilnil // the same
	}
	if err != nil {
		return nil, fmt.Errorf("getting PersistentVolumeClaim %s: %w", run.Status.Attempt.VolumeClaim, err)
	}
	return &claim, nil
}

// provide makes the claim of a Run before its first pod. What follows instead is
// nil where nothing is in the way.
func (r *Reconciler) provide(ctx context.Context, w world) (instead *plan, err error) {
	if w.run.Status.Attempt.VolumeClaim == "" || w.claim != nil {
		return instead, nil
	}
	claim := newVolumeClaim(w.run, w.version)
	err = r.client.Create(ctx, claim)
	switch {
	case apierrors.IsAlreadyExists(err):
		return r.takenClaim(ctx, w, claim)
	case err != nil:
		p, known := refusedClaim(w, err)
		if !known {
			return nil, fmt.Errorf("creating PersistentVolumeClaim %s: %w", claim.Name, err)
		}
		instead = &p
	}
	return instead, nil
}

// takenClaim finds a claim under the name of a Run's: its own, which the cache
// shows late, or somebody else's, which is waited for to go.
func (r *Reconciler) takenClaim(ctx context.Context, w world, claim *corev1.PersistentVolumeClaim) (instead *plan, err error) {
	var there corev1.PersistentVolumeClaim
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(claim), &there); err != nil {
		return nil, fmt.Errorf("getting PersistentVolumeClaim %s: %w", claim.Name, err)
	}
	switch {
	case !holds(w.run, &there):
		p := foreignClaim(w)
		instead = &p
	case !slices.Equal(there.Spec.AccessModes, claim.Spec.AccessModes):
		// Another Run has just made it, and in another way: the pod is thought out
		// again once the cache shows it.
		p := waiting(v1alpha1.ReasonStarting, "Another Run has made PersistentVolumeClaim "+claim.Name, time.Second)
		instead = &p
	}
	return instead, nil
}

// foreignClaim waits for somebody to take away what has the name of a Run's
// claim: what is on it is not to be believed.
func foreignClaim(w world) plan {
	return retriedCreate(w, v1alpha1.ReasonPending, fmt.Sprintf("PersistentVolumeClaim %s exists, but this Run did not create it. Delete it; the Run then continues", w.run.Status.Attempt.VolumeClaim))
}

// refusedClaim says what follows when the cluster refuses a claim.
func refusedClaim(w world, err error) (plan, bool) {
	text := apierr.Text(err)
	switch {
	case !apierr.IsRefusal(err) || apierr.IsMissingPermission(err):
		return plan{}, false
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return waiting(v1alpha1.ReasonPending, "The namespace is being deleted", maxRefusedWait), true
	case strings.Contains(text, "exceeded quota"):
		return retriedCreate(w, v1alpha1.ReasonQuotaExceeded, "The namespace's ResourceQuota has no room for the volume of the Run. Raise it, or delete other PersistentVolumeClaims: "+text), true
	case apierrors.IsForbidden(err), strings.Contains(text, "denied the request"), strings.Contains(text, "denied request"):
		return failure(v1alpha1.ReasonAdmissionDenied, "Admission refused the volume of the Run. Change spec.workspace of the Agent, or the policy: "+text), true
	case apierrors.IsInvalid(err):
		return failure(v1alpha1.ReasonMisconfigured, "The volume of the Run is invalid. Correct spec.workspace of the Agent: "+text), true
	}
	return retriedCreate(w, v1alpha1.ReasonPending, "The API server refused the volume of the Run: "+text), true
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
	return RetentionExpired(w.run, w.claim, w.now)
}
