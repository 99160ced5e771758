package controller_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/continuing"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// listBySource answers what the index of the cache is asked for.
func listBySource(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
	runs, is := list.(*v1alpha1.RunList)
	var o client.ListOptions
	o.ApplyOptions(opts)
	if !is || o.FieldSelector == nil || o.FieldSelector.Requirements()[0].Field != continuing.UnfinishedBySource {
		return c.List(ctx, list, opts...)
	}
	if err := c.List(ctx, runs, client.InNamespace(o.Namespace)); err != nil {
		return err
	}
	name := o.FieldSelector.Requirements()[0].Value
	runs.Items = slices.DeleteFunc(runs.Items, func(run v1alpha1.Run) bool {
		return !slices.Contains(continuing.IndexUnfinishedBySource(&run), name)
	})
	return nil
}

// finish lets the runner of the Run commit, and ends its pod.
func (b *fixture) finish() {
	b.t.Helper()
	b.reconcileUntilStable()
	pod := b.podNamed(b.get().Status.Attempt.Pod)
	b.startRunner(pod)
	if err := b.report(pod, task.Progress{Attempt: 1, Result: &task.Result{Committed: true, Reason: task.ReasonFinished}}); err != nil {
		b.t.Fatal(err)
	}
	b.reconcileUntilStable()
	b.expect("True Finished")
	b.endRunner(b.podNamed(pod.Name), 0, "")
}

func (b *fixture) podNamed(name string) *corev1.Pod {
	b.t.Helper()
	var pod corev1.Pod
	if err := b.Admin.Get(b.t.Context(), client.ObjectKey{Namespace: b.namespace, Name: name}, &pod); err != nil {
		b.t.Fatal(err)
	}
	return &pod
}

// The files of a Run stay until the Run that continues it has its copy, which a pod makes read-only.
func TestARunIsKeptForTheRunThatContinuesIt(t *testing.T) {
	b := newFixture(t)
	b.restrict()
	b.update(onVolume)
	first := b.run
	b.finish()
	b.run = b.newRun(func(r *v1alpha1.Run) {
		r.Name, r.Spec.Prompt, r.Spec.ContinueFrom = "second", "Now the tests.", &v1alpha1.ContinueFrom{Run: first.Name}
	})
	second := b.run
	b.now = b.now.Add(100 * time.Hour)
	b.run = first
	b.reconcileUntilStable()
	if len(b.claims()) != 1 {
		t.Fatalf("there are %d claims: the files of the first Run went although the second needs them", len(b.claims()))
	}
	b.run = second
	b.reconcileUntilStable()
	pod := b.podNamed("second-1")
	source := b.get().Status.ContinuedFrom
	if source == nil || source.UID != string(first.UID) || !slices.Equal(source.Runs, []string{first.Name}) {
		t.Fatalf("status.continuedFrom is %+v", source)
	}
	at := slices.IndexFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == "source" })
	if at < 0 || pod.Spec.Volumes[at].PersistentVolumeClaim.ClaimName != source.VolumeClaim || !pod.Spec.Volumes[at].PersistentVolumeClaim.ReadOnly {
		t.Fatalf("the volumes are %+v", pod.Spec.Volumes)
	}
	b.finish()
	b.run = first
	b.reconcileUntilStable()
	b.reconcileUntilStable()
	if claims := b.claims(); slices.ContainsFunc(claims, func(c corev1.PersistentVolumeClaim) bool {
		return c.Name == source.VolumeClaim && c.DeletionTimestamp == nil
	}) {
		t.Error("the files of the first Run stay although no Run needs them")
	}
}

// What was deleted is said, and no Run starts from the beginning instead.
func TestARunWhoseSourceWasDeletedDoesNotStart(t *testing.T) {
	b := newFixture(t)
	b.update(onVolume)
	first := b.run
	b.finish()
	for _, claim := range b.claims() {
		if err := b.Admin.Delete(t.Context(), &claim, client.PropagationPolicy("Background")); err != nil {
			t.Fatal(err)
		}
		claim.Finalizers = nil
		_ = b.Admin.Update(t.Context(), &claim) // what the controller of volumes does
	}
	b.run = b.newRun(func(r *v1alpha1.Run) {
		r.Name, r.Spec.ContinueFrom = "second", &v1alpha1.ContinueFrom{Run: first.Name}
	})
	b.reconcileUntilStable()
	b.expect("False NothingToContinue")
	if len(b.pods()) != 1 || !strings.Contains(message(b.get()), "were deleted with PersistentVolumeClaim "+runnerpod.VolumeClaimPrefix) {
		t.Errorf("there are %d pods: %s", len(b.pods()), message(b.get()))
	}
}
