//go:build e2e

package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
)

// deleteObject deletes an object as kubectl does, without waiting for it to be gone.
func (p *testNamespace) deleteObject(o client.Object, name string) {
	p.t.Helper()
	o.SetNamespace(p.name)
	o.SetName(name)
	if err := cluster.admin.Delete(p.t.Context(), o); err != nil {
		p.t.Fatalf("deleting %T %s: %v", o, name, err)
	}
}

// awaitEffects waits until a Run has begun to change things.
func (p *testNamespace) awaitEffects(run *v1alpha1.Run) *v1alpha1.Run {
	p.t.Helper()
	return p.await(run, "changes something", func(r *v1alpha1.Run) bool {
		return r.Status.Progress != nil && r.Status.Progress.Effects == v1alpha1.EffectsBegun
	})
}

// A claim that is deleted stays until its pod is gone. No attempt starts on it.
func TestClaimIsDeletedUnderARun(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	p.agent("slow-changer", onVolume)
	run := p.awaitEffects(p.run("slow-changer"))
	p.deleteObject(&corev1.PersistentVolumeClaim{}, run.Status.Attempt.VolumeClaim)
	p.deleteObject(&corev1.Pod{}, "slow-changer-1")
	want := "PersistentVolumeClaim " + run.Status.Attempt.VolumeClaim + " was deleted with the files and the journal. The agent had already changed something, so the Run is not started again"
	if got := message(p.ends(run, "False PodLost")); got != want {
		t.Errorf("the message is %q, want %q", got, want)
	}
}

// Work that changed nothing starts again on a new claim.
func TestClaimIsDeletedBeforeTheWorkChangesAnything(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	p.agent("idler", onVolume)
	run := p.run("idler")
	p.awaitRunner(run)
	claim := &corev1.PersistentVolumeClaim{}
	run = p.await(run, "has a claim", func(r *v1alpha1.Run) bool { return r.Status.Attempt.VolumeClaim != "" })
	if err := cluster.admin.Get(t.Context(), client.ObjectKey{Namespace: p.name, Name: run.Status.Attempt.VolumeClaim}, claim); err != nil {
		t.Fatal(err)
	}
	first := claim.UID
	p.deleteObject(&corev1.PersistentVolumeClaim{}, claim.Name)
	p.deleteObject(&corev1.Pod{}, "idler-1")
	p.await(run, "reports from attempt 2", func(r *v1alpha1.Run) bool { return r.Status.Progress.Attempt == 2 })
	if err := cluster.admin.Get(t.Context(), client.ObjectKeyFromObject(claim), claim); err != nil || claim.UID == first {
		t.Errorf("attempt 2 works on claim %s, the first was %s: %v", claim.UID, first, err)
	}
}

// A Run on a volume whose revision is deleted says so, not that its journal is lost.
func TestRevisionIsDeletedUnderARun(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	p.agent("slow-changer", onVolume)
	run := p.awaitEffects(p.run("slow-changer"))
	revision := snapshot.Name(run.Status.Attempt.AgentRevision)
	p.deleteObject(&v1alpha1.Agent{}, "slow-changer")
	p.deleteObject(&corev1.ConfigMap{}, revision)
	p.deleteObject(&corev1.Pod{}, "slow-changer-1")
	want := "The revision of Agent slow-changer that this Run started with was deleted (ConfigMap " + revision + "). Create a new Run"
	if got := message(p.ends(run, "False Misconfigured")); got != want {
		t.Errorf("the message is %q, want %q", got, want)
	}
}
