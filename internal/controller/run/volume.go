package run

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
	"github.com/deckhand-dev/deckhand/internal/run/continuing"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
)

// volumes reads and creates the PersistentVolumeClaims of Runs.
type volumes struct {
	client client.Client
	live   client.Reader // the API server itself, not the cache
}

// readVolume sets the volume of a state; nil: the Run has none, or another object has the name.
func readVolume(ctx context.Context, from client.Reader, s *state) error {
	s.volume = nil
	a := s.run.Status.Attempt
	if a == nil || a.VolumeClaim == "" {
		return nil
	}
	var claim corev1.PersistentVolumeClaim
	found, err := apierr.Found(from.Get(ctx, client.ObjectKey{Namespace: s.run.Namespace, Name: a.VolumeClaim}, &claim))
	if err != nil {
		return fmt.Errorf("getting PersistentVolumeClaim %s: %w", a.VolumeClaim, err)
	}
	if found && runnerpod.OwnsVolume(s.run, &claim) {
		s.volume = &claim
	}
	return nil
}

// create creates the volume of a Run before its first pod.
func (v volumes) create(ctx context.Context, s state) (facts, error) {
	if s.run.Status.Attempt.VolumeClaim == "" || s.volume != nil || runnerpod.SharesSource(s.run) {
		return facts{}, nil
	}
	volume := runnerpod.NewVolumeClaim(podInputOf(s, s.run.Status.Attempt.Number))
	err := v.client.Create(ctx, volume)
	switch {
	case err == nil:
		return facts{}, nil
	case apierrors.IsAlreadyExists(err):
		return v.find(ctx, s, volume)
	case isAnswer(err):
		return facts{volumeRefused: err}, nil
	}
	return facts{}, fmt.Errorf("creating PersistentVolumeClaim %s: %w", volume.Name, err)
}

// join makes a Run an owner and the user of the volume of the Run that it continues, before its first attempt is
// recorded. If several Runs try, one succeeds: the others have read another version of the volume.
func (v volumes) join(ctx context.Context, s state) error {
	if !sharesSource(s.run) || s.attempt() > 0 || s.source.VolumeClaim == nil {
		return nil
	}
	patch := runnerpod.Join(s.run, s.source.VolumeClaim)
	if patch == nil {
		return nil
	}
	claim := s.source.VolumeClaim.DeepCopy()
	if err := v.client.Patch(ctx, claim, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("joining PersistentVolumeClaim %s: %w", claim.Name, err)
	}
	return nil
}

// find reads the volume that has the name of the Run's volume: either its own, which the cache does not show yet, or
// another object's.
func (v volumes) find(ctx context.Context, s state, volume *corev1.PersistentVolumeClaim) (facts, error) {
	var found corev1.PersistentVolumeClaim
	if err := v.live.Get(ctx, client.ObjectKeyFromObject(volume), &found); err != nil {
		return facts{}, fmt.Errorf("getting PersistentVolumeClaim %s: %w", volume.Name, err)
	}
	return facts{
		volumeTaken:   !runnerpod.OwnsVolume(s.run, &found),
		volumeDiffers: !slices.Equal(found.Spec.AccessModes, volume.Spec.AccessModes),
	}, nil
}

// volumeNotCreated returns the plan if the volume of the attempt could not be created.
func volumeNotCreated(s state) (plan, bool) {
	name := s.run.Status.Attempt.VolumeClaim
	switch f := s.facts; {
	case f.volumeRefused != nil:
		return volumeRefusal(s, f.volumeRefused), true
	case f.volumeTaken: // what is on it is not to be trusted
		return retriedCreate(s, v1alpha1.ReasonPending, fmt.Sprintf("PersistentVolumeClaim %s exists, but this Run did not create it. Delete it; the Run then continues", name)), true
	case f.volumeDiffers: // the pod is built again once the cache shows the volume
		return waiting(v1alpha1.ReasonStarting, "Another Run has made PersistentVolumeClaim "+name, time.Second), true
	}
	return plan{}, false
}

// volumeRefusal returns the plan if the API server refuses the volume.
func volumeRefusal(s state, err error) plan {
	text := apierr.Text(err)
	switch apierr.Classify(err) {
	case apierr.Terminating:
		return waiting(v1alpha1.ReasonPending, "The namespace is being deleted", maxRefusedWait)
	case apierr.Quota:
		return retriedCreate(s, v1alpha1.ReasonQuotaExceeded, "The namespace's ResourceQuota has no room for the volume of the Run. Raise it, or delete other PersistentVolumeClaims: "+text)
	case apierr.Admission:
		return failure(v1alpha1.ReasonAdmissionDenied, "Admission refused the volume of the Run. Change spec.workspace of the Agent, or the policy: "+text)
	case apierr.Invalid:
		return failure(v1alpha1.ReasonMisconfigured, "The volume of the Run is invalid. Correct spec.workspace of the Agent: "+text)
	default:
		return retriedCreate(s, v1alpha1.ReasonPending, "The API server refused the volume of the Run: "+text)
	}
}

// volumeDeleted reports whether the volume of the current attempt does not exist or is being deleted. Kubernetes keeps
// a volume that is being deleted while a pod uses it, but starts no other pod with it.
func (s state) volumeDeleted() bool {
	a := s.run.Status.Attempt
	return a != nil && a.VolumeClaim != "" && (s.volume == nil || s.volume.DeletionTimestamp != nil)
}

// volumeLost ends a Run whose volume was deleted after it, or another Run that shares it, had effects: the journal is
// lost, so another attempt could repeat the effects.
func volumeLost(s state) (plan, bool) {
	a := s.run.Status.Attempt
	switch {
	case !s.volumeDeleted():
		return plan{}, false
	case runnerpod.SharesSource(s.run) && !s.hasSideEffects(): // a new volume would be empty
		problem := continuing.Deleted(s.run.Status.ContinuedFrom.Runs[0], a.VolumeClaim)
		return failure(problem.Reason, problem.Message), true
	case s.sharedFilesLost:
		return failure(v1alpha1.ReasonPodLost, fmt.Sprintf("PersistentVolumeClaim %s was deleted with files that other Runs of the workflow had changed, so the Run does not start with an empty one", a.VolumeClaim)), true
	case !runnerpod.SharesSource(s.run) && (a.Number == 1 || !s.hasSideEffects()):
		return plan{}, false
	}
	return failure(v1alpha1.ReasonPodLost, fmt.Sprintf("PersistentVolumeClaim %s was deleted with the files and the journal. The agent had already changed something, so the Run is not started again", a.VolumeClaim)), true
}

// volumeTerminating waits until a volume that is being deleted no longer exists, because the next one has the same
// name. It deletes pods that have ended, which would keep the volume.
func volumeTerminating(s state) (plan, bool) {
	if s.volume == nil || s.volume.DeletionTimestamp == nil {
		return plan{}, false
	}
	p := retriedCreate(s, v1alpha1.ReasonPending, fmt.Sprintf("PersistentVolumeClaim %s is being deleted. The Run then continues with a new one", s.volume.Name))
	if !p.settles() {
		p.remove = notTerminating(s.pods)
	}
	return p, true
}

// volumeLostBeforeStart replaces a pod that cannot start because its volume was deleted,
// unless that ends the Run.
func volumeLostBeforeStart(s state) (plan, bool) {
	if !s.volumeDeleted() || unschedulable(s.pod()) == "" && s.startupWarning == "" {
		return plan{}, false
	}
	if p, lost := volumeLost(s); lost {
		return p, true
	}
	a := s.run.Status.Attempt
	p := waiting(v1alpha1.ReasonRetrying, fmt.Sprintf("Deleting pod %s, which cannot start: PersistentVolumeClaim %s was deleted", a.Pod, a.VolumeClaim), 0)
	p.remove = notTerminating(s.pods)
	return p, true
}

// notTerminating returns the pods that are not being deleted.
func notTerminating(pods []corev1.Pod) []corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil })
}

// volumeExpired reports whether the retention of the volume has passed, or how much of it is left. A volume that Runs of
// a workflow share belongs to the parent and does not expire here. That of Runs that continue each other expires after
// the end of the last.
func volumeExpired(s state) (done bool, left time.Duration) {
	switch {
	case s.volume == nil || s.sharesVolume():
		return false, 0
	case s.use.Active != nil:
		return false, neededWait
	case s.use.Last != nil:
		return runnerpod.RetentionExpired(s.use.Last, s.volume, s.now)
	}
	return runnerpod.RetentionExpired(s.run, s.volume, s.now)
}

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
	if err == nil && s.volume != nil && s.run.Status.CompletionTime != nil {
		s.use, err = continuing.Reader{Cache: v.client, Live: v.live}.UseOf(ctx, s.run, s.volume)
	}
	if err != nil || s.run.Status.CompletionTime != nil || !s.volumeDeleted() {
		return err
	}
	if s.sharesVolume() {
		if s.sharedFilesLost, err = v.othersChangedFiles(ctx, s.run); err != nil {
			return err
		}
	}
	a := s.run.Status.Attempt
	if created := a.Number > 1 || a.PodUID != "" || s.sharedFilesLost || runnerpod.SharesSource(s.run); s.volume != nil || !created {
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
