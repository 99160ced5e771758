package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cli/requests"
	"github.com/deckhand-dev/deckhand/internal/run/continuing"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
)

// checkEnded returns an error if a Run has not ended, or can never be continued. It reads nothing.
func checkEnded(run *v1alpha1.Run) error {
	again := requests.CommandAbout("run --from", client.ObjectKey{Namespace: run.Namespace, Name: "run/" + run.Name})
	switch a := run.Status.Attempt; {
	case run.Spec.Workflow != "":
		return fmt.Errorf("run %s is a Run of Workflow %s, which is retried and not continued: %s. To continue one of its child Runs, which %s shows, name that", run.Name, run.Spec.Workflow, requests.Command("retry", run), requests.Command("tree", run))
	case !isFinished(run) && run.Spec.DesiredState == v1alpha1.DesiredPaused:
		return fmt.Errorf("run %s is paused and has not ended: let it work again with %s", run.Name, requests.Command("resume", run))
	case !isFinished(run):
		return fmt.Errorf("run %s has not ended (%s). To tell its agent something now: %s. To continue it after its end, first: kubectl wait --for=condition=Finished --timeout=-1s run/%s -n %s",
			run.Name, reason(run), requests.Command("message", run, "TEXT"), run.Name, run.Namespace)
	case reason(run) == v1alpha1.ReasonRestored:
		return fmt.Errorf("run %s was restored from a backup, without its conversation and its files. To do its work: %s", run.Name, again)
	case a == nil:
		return fmt.Errorf("run %s ended before it started (%s), so there is nothing to continue. To do its work: %s", run.Name, reason(run), again)
	case a.VolumeClaim == "":
		return fmt.Errorf("run %s kept no conversation and no files, because workspace.durability of Agent %s was Pod. Set it to Volume, so that later Runs can be continued. To do the work of this one again: %s", run.Name, run.Spec.Agent, again)
	case len(chainOf(run)) >= v1alpha1.MaxContinued:
		return fmt.Errorf("run %s has continued %d Runs, one after the other, and a Run can continue at most %d: create a Run with what matters of them in its prompt", run.Name, len(chainOf(run)), v1alpha1.MaxContinued)
	}
	return nil
}

// checkVolume returns an error if the volume with the conversation of a Run was deleted. A user may continue Runs
// without reading volumes.
func checkVolume(ctx context.Context, c client.Client, run *v1alpha1.Run) error {
	name := run.Status.Attempt.VolumeClaim
	var claim corev1.PersistentVolumeClaim
	err := c.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: name}, &claim)
	switch {
	case apierrors.IsForbidden(err):
		return nil
	case err != nil && !apierrors.IsNotFound(err):
		return err
	case err != nil || !runnerpod.OwnsVolume(run, &claim) || claim.DeletionTimestamp != nil:
		return fmt.Errorf("the conversation and the files of Run %s were deleted with PersistentVolumeClaim %s%s. To keep those of later Runs for longer, set retention.volume and retention.keepVolume of Agent %s",
			run.Name, name, sinceItsEnd(run), run.Spec.Agent)
	}
	return nil
}

// sinceItsEnd returns when a Run ended, for a message about its volume.
func sinceItsEnd(run *v1alpha1.Run) string {
	if run.Status.CompletionTime == nil {
		return ""
	}
	return ", after its end at " + run.Status.CompletionTime.UTC().Format(time.RFC3339)
}

// A keptVolume is the volume of a Run that can be continued.
type keptVolume struct {
	// until is when it is deleted; zero: after the Run that it belongs to.
	until time.Time
	// owner is that Run, if it is another one.
	owner string
	// user is a Run that works on the same files and has not ended, so the time does not run yet.
	user string
}

// keptVolumeOf returns the volume with the conversation of a Run that can be continued now; false: it cannot. The claim
// is nil if it does not exist.
func keptVolumeOf(ctx context.Context, c client.Reader, run *v1alpha1.Run, claim *corev1.PersistentVolumeClaim, now time.Time) (keptVolume, bool, error) {
	isEnded := checkEnded(run) == nil
	if isEnded && claim != nil && claim.DeletionTimestamp == nil && runnerpod.OwnsVolume(run, claim) {
		return keptUntil(ctx, c, run, claim, now)
	}
	return keptVolume{}, false, nil
}

// keptUntil returns until when the volume with the files of a finished Run exists; false: it is deleted with the pods.
func keptUntil(ctx context.Context, c client.Reader, run *v1alpha1.Run, claim *corev1.PersistentVolumeClaim, now time.Time) (keptVolume, bool, error) {
	isOwner := func(o metav1.OwnerReference) bool { return o.UID == run.UID }
	if controller := metav1.GetControllerOf(claim); controller != nil && !slices.ContainsFunc(runnerpod.Owners(claim), isOwner) {
		return keptVolume{owner: controller.Name}, true, nil
	}
	use, err := continuing.Reader{Cache: c, Live: c}.UseOf(ctx, run, claim)
	switch {
	case err != nil:
		return keptVolume{}, false, err
	case use.Active != nil:
		return keptVolume{user: use.Active.Name}, true, nil
	}
	expired, left := runnerpod.RetentionExpired(cmp.Or(use.Last, run), claim, now)
	if expired || claim.DeletionTimestamp != nil {
		return keptVolume{}, false, nil
	}
	return keptVolume{until: now.Add(left)}, true, nil
}

// text returns until when a volume is kept.
func (k keptVolume) text() string {
	switch {
	case k.owner != "":
		return "as that of " + k.owner
	case k.user != "":
		return "after the end of " + k.user
	}
	return k.until.UTC().Format(time.RFC3339)
}

// howToContinue returns the sentence with the command that continues a Run; empty: it cannot be continued.
func howToContinue(run *v1alpha1.Run) string {
	if checkEnded(run) != nil {
		return ""
	}
	return ". To continue the Run: " + requests.Command("continue", run, "-p TEXT")
}

// sayContinuable prints how a Run that has ended is continued, if it can be.
func (f *Factory) sayContinuable(ctx context.Context, c client.Client, run *v1alpha1.Run) {
	if checkEnded(run) != nil {
		return
	}
	var claim corev1.PersistentVolumeClaim
	if c.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: run.Status.Attempt.VolumeClaim}, &claim) != nil {
		return
	}
	if kept, can, err := keptVolumeOf(ctx, c, run, &claim, f.Now()); can && err == nil && !kept.until.IsZero() {
		fmt.Fprintf(f.Err, "To continue it, until %s: %s\n", kept.text(), requests.Command("continue", run, "-p TEXT"))
	}
}
