package run

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// backstop is how much later than limits.duration the cluster ends a pod that neither runner nor operator ended. It
// includes time to pull an image and to report.
const backstop = 10 * time.Minute

// outageAllowance is how long a runner may wait for unavailable models in total. Only limits.deadline bounds the sum of
// several outages.
const outageAllowance = 7 * 24 * time.Hour

// waitAllowance returns how much longer than limits.duration a pod may run because it waits: for users, for child Runs,
// for a model, or while it is paused without a volume.
func waitAllowance(l task.Limits) time.Duration {
	wait := time.Duration(l.WaitSeconds) * time.Second
	if outage := snapshot.ModelOutage(l); outage > 0 {
		wait += max(outage, outageAllowance)
	}
	return wait
}

// podInputOf returns the input from which the pod of an attempt is built.
func podInputOf(s state, attempt int32) runnerpod.Input {
	in := runnerpod.Input{
		Run:             s.run,
		Revision:        s.revision,
		Attempt:         attempt,
		Limits:          s.limits().task,
		Durable:         s.durable(),
		VolumeClaim:     s.volume,
		Source:          sourceVolumeOf(s, attempt),
		ActiveDeadline:  remainingDuration(s) + waitAllowance(s.limits().task) + backstop,
		Signals:         initialSignals(s),
		Image:           s.runner,
		Defaults:        s.podDefaults,
		NetworkPolicies: s.networkPolicies,
	}
	if !in.Durable {
		in.Limits = withGrants(in.Limits, s.granted) // a durable journal remembers
	}
	return in
}

// observeAssignable reads which users the cluster may assign to the pod of the attempt, if the cluster chooses the user
// and the pod has not been compared yet.
func observeAssignable(ctx context.Context, live client.Reader, s *state) error {
	a := s.run.Status.Attempt
	if s.podDefaults.User != runnerpod.PodUserCluster || a != nil && a.PodUID != "" {
		return nil
	}
	var namespace corev1.Namespace
	if err := live.Get(ctx, client.ObjectKey{Name: s.run.Namespace}, &namespace); err != nil {
		return fmt.Errorf("getting Namespace %s: %w", s.run.Namespace, err)
	}
	s.assignable = runnerpod.AssignableIn(namespace.Annotations)
	return nil
}

// recordOwner records on the volume of a Run which user the cluster assigned to its first pod, so that later pods
// request the same user.
func (v volumes) recordOwner(ctx context.Context, s state, pod *corev1.Pod) error {
	name := s.run.Status.Attempt.VolumeClaim
	if name == "" || s.podDefaults.User != runnerpod.PodUserCluster || runnerpod.FileOwnerOf(s.volume) != nil {
		return nil
	}
	owner := runnerpod.OwnerOf(pod)
	if owner == nil || !s.assignable.Allows(*owner) {
		return nil
	}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.run.Namespace, Name: name}}
	patch := runnerpod.ToJSON(map[string]any{"metadata": map[string]any{
		"annotations": map[string]string{v1alpha1.AnnotationFileOwner: owner.String()},
	}})
	err := v.client.Patch(ctx, claim, client.RawPatch(types.MergePatchType, patch))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patching PersistentVolumeClaim %s: %w", name, err)
	}
	return nil
}

// podWithoutUser ends a Run whose containers have no common user: the runner could not read the files of the sandbox.
func podWithoutUser(s state, container string) plan {
	return failure(v1alpha1.ReasonMisconfigured, fmt.Sprintf("The operator leaves the user of pods to the cluster (value podUser of the chart), which gave none to container %s of pod %s. Set podUser: Deckhand, or have the admission of the cluster assign users, as OpenShift does", container, s.run.Status.Attempt.Pod))
}

// fileOwnerRefused waits while the namespace does not allow the user who owns the files on the volume. Another user
// could not read the journal.
func fileOwnerRefused(s state) (plan, bool) {
	owner := runnerpod.FileOwnerOf(s.volume)
	if s.podDefaults.User != runnerpod.PodUserCluster || owner == nil || s.assignable.Allows(*owner) {
		return plan{}, false
	}
	return retriedCreate(s, v1alpha1.ReasonPending, fmt.Sprintf("The files on PersistentVolumeClaim %s belong to user %s, and Namespace %s now allows only %s. If podUser of the chart was changed, set it back; otherwise set the annotations openshift.io/sa.scc.uid-range and openshift.io/sa.scc.supplemental-groups of the Namespace back. The Run then continues",
		s.volume.Name, owner, s.run.Namespace, s.assignable)), true
}
