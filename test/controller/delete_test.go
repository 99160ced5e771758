package controller_test

import (
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// states bring a Run into a state.
var states = map[string]func(b *fixture){
	"Pending": func(b *fixture) {
		b.missingPolicies = "a policy"
		b.reconcileUntilStable()
		b.expect("Unknown Pending")
	},
	"created": func(b *fixture) {
		if err := b.reconcile(); err != nil {
			b.t.Fatal(err)
		}
		b.expect("Unknown Pending")
		b.onlyPod()
	},
	"reserved": func(b *fixture) {
		b.update(gen.Durable)
		if err := b.reconcile(); err != nil {
			b.t.Fatal(err)
		}
		b.expect("Unknown Starting")
	},
	"Starting": func(b *fixture) {
		b.reconcileUntilStable()
		b.expect("Unknown Starting")
	},
	"Running": func(b *fixture) {
		b.reconcileUntilStable()
		b.works(task.Progress{Attempt: 1})
		b.expect("Unknown Running")
	},
	"AwaitingAnswer": func(b *fixture) {
		b.reconcileUntilStable()
		b.works(task.Progress{Attempt: 1, State: v1alpha1.ReasonAwaitingAnswer, Pending: []task.Pending{{ID: "s3c1", Kind: task.PendingQuestion, Question: "?", AskedAt: "2030-01-01T00:00:00Z"}}})
		b.expect("Unknown AwaitingAnswer")
	},
	"Retrying": func(b *fixture) {
		b.reconcileUntilStable()
		b.works(task.Progress{Attempt: 1, Result: &task.Result{Committed: true, Reason: task.ReasonModelUnavailable}})
		b.expect("Unknown Retrying")
	},
	"Stopping": func(b *fixture) {
		b.reconcileUntilStable()
		b.works(task.Progress{Attempt: 1})
		b.setDesiredState(v1alpha1.DesiredStopped)
		b.reconcileUntilStable()
		b.expect("Unknown Stopping")
	},
	"finished": func(b *fixture) {
		b.reconcileUntilStable()
		b.works(task.Progress{Attempt: 1, Result: &task.Result{Committed: true, Reason: task.ReasonFinished}})
		b.expect("True Finished")
	},
}

// works lets the pod of attempt 1 start and report.
func (b *fixture) works(p task.Progress) {
	b.t.Helper()
	pod := b.onlyPod()
	b.startRunner(pod)
	if err := b.report(pod, p); err != nil {
		b.t.Fatal(err)
	}
	b.now = b.now.Add(5 * time.Second)
	b.reconcileUntilStable()
}

// Whatever a Run is at when it is deleted, and however: the operator creates nothing
// that stays, and holds it by no finalizer, so that it goes as soon as Kubernetes'
// own garbage collector lets it.
func TestADeletedRunGoesFromEveryState(t *testing.T) {
	for state, reach := range states {
		for _, policy := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan} {
			t.Run(state+", "+string(policy), func(t *testing.T) {
				b := newFixture(t)
				reach(b)
				b.deleted(policy)
			})
		}
	}
}

// deleted deletes the Run and lets the operator go on for a while.
func (b *fixture) deleted(policy metav1.DeletionPropagation) {
	b.t.Helper()
	run, pods := b.get(), len(b.pods())
	if err := b.Admin.Delete(b.t.Context(), run.DeepCopy(), client.PropagationPolicy(policy)); err != nil {
		b.t.Fatal(err)
	}
	b.missingPolicies = ""
	for range 3 {
		b.now = b.now.Add(time.Minute)
		if err := b.reconcileCopy(b.there(run)); err != nil && !apierr.IsConflict(err) && !apierrors.IsNotFound(err) {
			b.t.Errorf("reconciling: %v", err)
		}
	}
	b.checkDeleted(run, pods, policy)
	b.collect(run)
	if err := b.Admin.Get(b.t.Context(), client.ObjectKeyFromObject(run), &v1alpha1.Run{}); !apierrors.IsNotFound(err) {
		b.t.Errorf("the Run stays: %v", err)
	}
}

// checkDeleted checks the pods of a Run that was deleted. Where the Run is gone at
// once, a late cache may still show it: what the operator creates by it belongs to it,
// so that the garbage collector deletes that too.
func (b *fixture) checkDeleted(run *v1alpha1.Run, pods int, policy metav1.DeletionPropagation) {
	b.t.Helper()
	now := b.pods()
	if policy != metav1.DeletePropagationBackground && len(now) > pods {
		b.t.Errorf("there were %d pods, and there are %d", pods, len(now))
	}
	for i := range now {
		if !metav1.IsControlledBy(&now[i], run) {
			b.t.Errorf("pod %s does not belong to the Run", now[i].Name)
		}
	}
}

// there is the Run as it is, or the given copy where it is gone.
func (b *fixture) there(otherwise *v1alpha1.Run) *v1alpha1.Run {
	b.t.Helper()
	var now v1alpha1.Run
	if err := b.Admin.Get(b.t.Context(), client.ObjectKeyFromObject(otherwise), &now); err != nil {
		return otherwise.DeepCopy()
	}
	return &now
}

// collect takes the finalizers away that the garbage collector would: its own.
func (b *fixture) collect(run *v1alpha1.Run) {
	b.t.Helper()
	now := b.there(run)
	for _, f := range now.Finalizers {
		if f != metav1.FinalizerDeleteDependents && f != metav1.FinalizerOrphanDependents {
			b.t.Errorf("the Run has the finalizer %s", f)
			return
		}
	}
	err := b.Admin.Patch(b.t.Context(), now, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
	if client.IgnoreNotFound(err) != nil {
		b.t.Fatal(err)
	}
}
