//go:build e2e

package e2e

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/apitest"
)

// awaitRunner waits until the runner of a Run is at work, and returns its pod.
func (p *testNamespace) awaitRunner(run *v1alpha1.Run) *corev1.Pod {
	p.t.Helper()
	p.await(run, "reports", func(r *v1alpha1.Run) bool { return r.Status.Progress != nil })
	return p.pod(run, 1)
}

// deleted waits until an object is there no more.
func (p *testNamespace) deleted(o client.Object) {
	p.t.Helper()
	err := until(p.t.Context(), func(ctx context.Context) (bool, error) {
		err := cluster.admin.Get(ctx, client.ObjectKeyFromObject(o), o.DeepCopyObject().(client.Object))
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		p.t.Errorf("%T %s stays: %v", o, o.GetName(), err)
	}
}

// The garbage collector deletes the pod of a Run before or after the Run, as it was
// asked to: the admission policy lets it.
func TestPodsGoWithTheirRun(t *testing.T) {
	t.Parallel()
	for _, how := range []metav1.DeletionPropagation{metav1.DeletePropagationForeground, metav1.DeletePropagationBackground} {
		t.Run(string(how), func(t *testing.T) {
			t.Parallel()
			p := newNamespace(t)
			p.agent("idler")
			run := p.run("idler")
			pod := p.awaitRunner(run)
			if err := cluster.admin.Delete(t.Context(), run, &client.DeleteOptions{PropagationPolicy: &how}); err != nil {
				t.Fatal(err)
			}
			p.deleted(run)
			p.deleted(pod)
		})
	}
}

// A pod that is to stay when its Run is deleted does not work on: its runner ends
// itself with the next report, and nothing takes its place.
func TestThePodOfARunThatIsOrphanedEnds(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	p.agent("slow-reader")
	run := p.run("slow-reader")
	pod := p.awaitRunner(run)
	orphan := metav1.DeletePropagationOrphan
	if err := cluster.admin.Delete(t.Context(), run, &client.DeleteOptions{PropagationPolicy: &orphan}); err != nil {
		t.Fatal(err)
	}
	p.deleted(run)
	err := until(t.Context(), func(ctx context.Context) (bool, error) {
		err := cluster.admin.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return err == nil && (pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded), err
	})
	if err != nil {
		t.Fatalf("pod %s is %s: %v", pod.Name, pod.Status.Phase, err)
	}
	for _, s := range pod.Status.ContainerStatuses {
		if end := s.State.Terminated; s.Name == "runner" && (end == nil || end.ExitCode != 77) {
			t.Errorf("the runner ended with %+v, want the code of a fenced one", end)
		}
	}
	if len(pod.OwnerReferences) != 0 {
		t.Errorf("its owners are %v", pod.OwnerReferences)
	}
	var pods corev1.PodList
	if err := cluster.admin.List(t.Context(), &pods, client.InNamespace(p.name)); err != nil || len(pods.Items) != 1 {
		t.Errorf("there are %d pods (%v), want that one", len(pods.Items), err)
	}
}

// Who may edit pods may not take one away from its Run, nor the Run's second pod be
// made that way.
func TestEditorCannotTakeAPodFromItsRun(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	p.agent("idler")
	run := p.run("idler")
	pod := p.awaitRunner(run)
	stripped := pod.DeepCopy()
	stripped.OwnerReferences = nil
	err := p.as("eve", "edit").Patch(t.Context(), stripped, client.MergeFrom(pod))
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "ownerReferences of a runner pod") {
		t.Errorf("the server says %v", err)
	}
	egress := pod.Labels[v1alpha1.LabelEgress]
	stripped = pod.DeepCopy()
	stripped.OwnerReferences = nil
	delete(stripped.Labels, v1alpha1.LabelEgress)
	if err := cluster.admin.Patch(t.Context(), stripped.DeepCopy(), client.MergeFrom(pod)); !apierrors.IsForbidden(err) {
		t.Errorf("the server says to an administrator: %v", err)
	}
	if err := p.as(apitest.Operator, "cluster-admin").Patch(t.Context(), stripped, client.MergeFrom(pod)); err != nil {
		t.Fatal(err)
	}
	err = until(t.Context(), func(ctx context.Context) (bool, error) {
		err := cluster.admin.Get(ctx, client.ObjectKeyFromObject(pod), pod)
		return err == nil && metav1.GetControllerOf(pod) != nil && pod.Labels[v1alpha1.LabelEgress] != "", err
	})
	if err != nil || pod.Labels[v1alpha1.LabelEgress] != egress {
		t.Errorf("the operator does not restore the owner and the label %q: %v, %v", egress, err, pod.Labels)
	}
	var pods corev1.PodList
	if err := cluster.admin.List(t.Context(), &pods, client.InNamespace(p.name)); err != nil || len(pods.Items) != 1 {
		t.Errorf("there are %d pods (%v), want one", len(pods.Items), err)
	}
}

// The time in which a Run waits for a Secret does not count towards limits.duration.
func TestWaitingForASecretIsNotCountedAsDuration(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: "key"}}
	if err := cluster.admin.Delete(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	p.agent("trivial")
	run := p.run("trivial", func(r *v1alpha1.Run) {
		limit := v1alpha1.Duration("20s")
		r.Spec.Limits = &v1alpha1.Limits{Duration: &limit}
	})
	waits := p.await(run, "waits a second time", func(r *v1alpha1.Run) bool {
		return strings.Contains(succeeded(r), "SecretMissing") && r.Status.Attempt.Number >= 2
	})
	pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.name, Name: waits.Status.Attempt.Pod}}
	err := until(t.Context(), func(ctx context.Context) (bool, error) { // the next attempt deletes it
		err := cluster.admin.Get(ctx, client.ObjectKeyFromObject(&pod), &pod)
		return apierrors.IsNotFound(err) || pod.Status.Phase == corev1.PodFailed, client.IgnoreNotFound(err)
	})
	if err != nil {
		t.Fatalf("pod %s is %s: %v", pod.Name, pod.Status.Phase, err)
	}
	p.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"}, StringData: map[string]string{"api-key": key}})
	seen := p.ends(run, "True Finished")
	if used := seen.Status.Progress.Usage.DurationSeconds; seen.Status.Failures+seen.Status.Disruptions != 0 || used > 15 {
		t.Errorf("%d failures, %d disruptions, %d s used", seen.Status.Failures, seen.Status.Disruptions, used)
	}
	var pods corev1.PodList
	if err := cluster.admin.List(t.Context(), &pods, client.InNamespace(p.name)); err != nil || len(pods.Items) > 1 {
		t.Errorf("there are %d pods (%v), want at most one", len(pods.Items), err)
	}
}
