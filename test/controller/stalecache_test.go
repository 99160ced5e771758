package controller_test

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

func TestStaleCopyOfARunWithoutReservationCreatesNothing(t *testing.T) {
	for name, agent := range map[string]func(*v1alpha1.Agent){"reserved": gen.Durable, "not reserved": func(*v1alpha1.Agent) {}} {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			b.update(agent)
			stale := b.get()
			b.reconcileUntilStable()
			if err := b.reconcileCopy(stale); !apierr.IsConflict(err) {
				t.Errorf("acting on an old copy: %v, want a conflict", err)
			}
			b.onlyPod()
		})
	}
}

// The first pod of a Run is created for the Run that the API server has.
func TestTheFirstPodIsNotCreatedFromAnOldCopy(t *testing.T) {
	cases := map[string]func(b *fixture){
		"the Run was changed": func(b *fixture) { b.setDesiredState(v1alpha1.DesiredPaused) },
		"a pod has reported":  func(b *fixture) { b.patchProgress(`{"version":1,"attempt":1,"podUID":"another"}`) },
		"the Run was deleted": func(b *fixture) {
			if err := b.Admin.Delete(b.t.Context(), b.get()); err != nil {
				b.t.Fatal(err)
			}
		},
		"the Run was deleted and created again": func(b *fixture) {
			again := b.get()
			if err := b.Admin.Delete(b.t.Context(), again); err != nil {
				b.t.Fatal(err)
			}
			b.newRun(func(r *v1alpha1.Run) { r.Name = again.Name })
		},
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			b := newFixture(t)
			copied := b.get()
			change(b)
			if err := b.reconcileCopy(copied); err != nil && !apierr.IsConflict(err) {
				t.Errorf("acting on an old copy: %v", err)
			}
			if pods := b.pods(); len(pods) != 0 {
				t.Errorf("pod %s is created", pods[0].Name)
			}
		})
	}
}

func TestStaleCopyOfAFinishedRunMakesNothing(t *testing.T) {
	b := newFixture(t)
	stale := b.get()
	b.reconcileUntilStable()
	claimed := b.get()
	pod := b.onlyPod()
	b.startRunner(pod)
	if err := b.report(pod, task.Progress{Attempt: 1, Result: &task.Result{Committed: true, Reason: task.ReasonFinished}}); err != nil {
		t.Fatal(err)
	}
	b.reconcileUntilStable()
	b.now = b.now.Add(2 * time.Hour)
	b.reconcileUntilStable()
	for name, copied := range map[string]*v1alpha1.Run{"before its claim": stale, "when it ran": claimed} {
		if err := b.reconcileCopy(copied); !apierr.IsConflict(err) {
			t.Errorf("%s: %v, want a conflict", name, err)
		}
	}
	b.expect("True Finished")
}

// An operator may stall between its last look at a new Run and the creation of the pod, while another
// ends the Run.
func TestThePodOfAStalledOperatorIsDeleted(t *testing.T) {
	b := newFixture(t)
	other := b.reconciler()
	b.faults.Create = func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
		if _, isPod := o.(*corev1.Pod); isPod {
			b.setDesiredState(v1alpha1.DesiredStopped)
			if _, err := other.Reconcile(ctx, b.get()); err != nil {
				t.Errorf("stopping the Run: %v", err)
			}
		}
		return c.Create(ctx, o, opts...)
	}
	if err := b.reconcile(); err != nil && !apierr.IsConflict(err) {
		t.Fatal(err)
	}
	b.expect("False Stopped")
	if b.get().Status.Attempt != nil {
		t.Fatal("the Run has an attempt: nobody stalled")
	}
	b.onlyPod()
	b.reconcileUntilStable()
	if pods := b.pods(); len(pods) != 0 {
		t.Errorf("pod %s stays beside the finished Run", pods[0].Name)
	}
}

// The pod of a Run ends right after the runner commits its result, and the cache may
// not show yet that the Run has settled.
func TestStaleCopyOfACommittedRunSettlesOnce(t *testing.T) {
	b := newFixture(t)
	b.reconcileUntilStable()
	pod := b.onlyPod()
	b.startRunner(pod)
	if err := b.report(pod, task.Progress{Attempt: 1, Result: &task.Result{Committed: true, Reason: task.ReasonFinished}}); err != nil {
		t.Fatal(err)
	}
	stale := b.get()
	b.reconcileUntilStable()
	settled := b.get()
	b.endRunner(b.onlyPod(), task.ExitCommitted, "")
	for name, later := range map[string]time.Duration{"in the same second": 0, "in the next second": time.Second} {
		b.now = b.now.Add(later)
		if err := b.reconcileCopy(stale); !apierr.IsConflict(err) {
			t.Errorf("%s: %v, want a conflict", name, err)
		}
	}
	if got := b.get(); got.ResourceVersion != settled.ResourceVersion {
		t.Errorf("the Run was written again: %+v", got.Status)
	}
	close(b.events.Events)
	var finished []string
	for e := range b.events.Events {
		if strings.Contains(e, v1alpha1.ReasonFinished) {
			finished = append(finished, e)
		}
	}
	if len(finished) != 1 {
		t.Errorf("the Run was announced as finished %d times: %q", len(finished), finished)
	}
}

// A runner commits a result and ends. Its pod may be seen to have ended before the Run is seen with
// the result, of which the termination message says less.
func TestATerminationMessageDoesNotReplaceALaterReport(t *testing.T) {
	b := newFixture(t)
	b.reconcileUntilStable()
	pod := b.onlyPod()
	b.startRunner(pod)
	if err := b.report(pod, task.Progress{Attempt: 1, Effects: task.EffectsBegun}); err != nil {
		t.Fatal(err)
	}
	b.reconcileUntilStable()
	stale := b.get()
	result := task.Result{Committed: true, Reason: task.ReasonFinished, Text: strings.Repeat("The whole text. ", 400)}
	if err := b.report(pod, task.Progress{Attempt: 1, Effects: task.EffectsBegun, Result: &result}); err != nil {
		t.Fatal(err)
	}
	reported := b.get().Status.Progress
	message := task.Termination{Version: task.Version, Attempt: 1, Result: result}.Encode()
	b.endRunner(b.onlyPod(), task.ExitCommitted, string(message))
	if err := b.reconcileCopy(stale); !apierr.IsConflict(err) {
		t.Errorf("acting on an old copy: %v, want a conflict", err)
	}
	b.reconcileUntilStable()
	b.expect("True Finished")
	if p := b.get().Status.Progress; p.Sequence != reported.Sequence || p.Result.Text != result.Text {
		t.Errorf("report %d with %d bytes of text, want %d with %d", p.Sequence, len(p.Result.Text), reported.Sequence, len(result.Text))
	}
}
