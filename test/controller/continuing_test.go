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

// Two Runs work on the files of a Run itself, one after the other. The files stay when that Run is deleted, and until the
// retention after the last end.
func TestRunsThatShareTheFilesOfARun(t *testing.T) {
	b := newFixture(t)
	b.restrict()
	b.update(func(a *v1alpha1.Agent) {
		fiveMinutes := v1alpha1.Duration("5m")
		onVolume(a)
		a.Spec.Retention.Volume = &fiveMinutes
	})
	first := b.run
	b.finish()
	shares := func(name string) *v1alpha1.Run {
		return b.newRun(func(r *v1alpha1.Run) {
			r.Name, r.Spec.Prompt = name, "More."
			r.Spec.ContinueFrom = &v1alpha1.ContinueFrom{Run: first.Name, Workspace: v1alpha1.ContinueShare}
		})
	}
	second, third := shares("second"), shares("third")
	b.run = second
	b.reconcileUntilStable()
	pod := b.podNamed("second-1")
	claim := b.get().Status.Attempt.VolumeClaim
	if claim == "" || claim != b.get().Status.ContinuedFrom.VolumeClaim || len(b.claims()) != 1 || b.claims()[0].Name != claim {
		t.Fatalf("the Run is on %q, of the claims %+v", claim, b.claims())
	}
	if owners := b.claims()[0].OwnerReferences; len(owners) != 2 || owners[0].UID != first.UID || owners[1].UID != second.UID || owners[1].Controller != nil {
		t.Errorf("the owners are %+v", owners)
	}
	b.run = third
	b.reconcileUntilStable()
	b.expect("Unknown Queued")
	if b.get().Status.Attempt != nil || !strings.Contains(message(b.get()), "Waiting for the end of Run second") {
		t.Errorf("%s, with %+v", message(b.get()), b.get().Status.Attempt)
	}
	b.run = second
	b.startRunner(pod)
	b.finish()
	b.run = third
	b.reconcileUntilStable()
	if got := b.get().Status.Attempt; got == nil || got.VolumeClaim != claim {
		t.Fatalf("the attempt is %+v: %s", got, message(b.get()))
	}
	// The garbage collector removes the owner that was deleted.
	kept := b.claims()[0]
	kept.OwnerReferences = kept.OwnerReferences[1:]
	if err := b.Admin.Update(t.Context(), &kept); err != nil {
		t.Fatal(err)
	}
	b.now = b.now.Add(6 * time.Minute)
	b.run = second
	b.reconcileUntilStable()
	if kept := b.claims(); len(kept) != 1 || kept[0].DeletionTimestamp != nil {
		t.Fatal("the files went although a Run works on them")
	}
	b.run = third
	b.finish()
	b.now = b.now.Add(4 * time.Minute)
	for _, b.run = range []*v1alpha1.Run{second, third} {
		b.reconcileUntilStable()
	}
	if kept := b.claims(); len(kept) != 1 || kept[0].DeletionTimestamp != nil {
		t.Fatal("the files went before the retention after the last end")
	}
	b.now = b.now.Add(2 * time.Hour) // their pods are kept for some time
	for _, b.run = range []*v1alpha1.Run{second, third} {
		b.reconcileUntilStable()
	}
	if kept := b.claims(); len(kept) > 0 && kept[0].DeletionTimestamp == nil {
		t.Error("the files stay")
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
