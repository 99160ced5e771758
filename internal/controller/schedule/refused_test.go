package schedule

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/statuspatch"
	"github.com/deckhand-dev/deckhand/internal/testing/apierrtest"
)

// A refuser is an API server that refuses some writes for a Schedule.
type refuser struct {
	*apierrtest.Server
	t *testing.T
}

func (r *refuser) reconcile() error {
	r.t.Helper()
	reconciler := New(r, r, events.NewFakeRecorder(100), func() time.Time { return r.Now })
	_, err := reconciler.Reconcile(r.t.Context(), r.get())
	return err
}

func (r *refuser) get() *v1alpha1.Schedule {
	r.t.Helper()
	var s v1alpha1.Schedule
	if err := r.Get(r.t.Context(), client.ObjectKeyFromObject(nightly()), &s); err != nil {
		r.t.Fatal(err)
	}
	return &s
}

// tomorrow is the next time that a Run is due.
func (r *refuser) tomorrow() {
	r.t.Helper()
	if err := r.reconcile(); err != nil {
		r.t.Fatal(err)
	}
	next := r.get().Status.NextScheduleTime
	if next == nil {
		r.t.Fatalf("no time comes next: %+v", r.get().Status)
	}
	r.Now = next.Time
}

// ended ends all Runs.
func (r *refuser) ended() {
	r.t.Helper()
	var list v1alpha1.RunList
	if err := r.List(r.t.Context(), &list); err != nil {
		r.t.Fatal(err)
	}
	for i := range list.Items {
		run, now := &list.Items[i], metav1.NewTime(r.Now)
		run.Status.CompletionTime = &now
		run.Status.Conditions = statuspatch.MergeConditions(nil, now, 1, metav1.Condition{Type: v1alpha1.ConditionSucceeded, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonFinished})
		if err := r.Status().Update(r.t.Context(), run); err != nil {
			r.t.Fatal(err)
		}
	}
}

// What the operator may not do for a Schedule, or is refused, stands in its condition
// after one pass.
func TestWhatIsRefusedStandsInTheConditionOfASchedule(t *testing.T) {
	for what, w := range map[string]write{
		"creating a Run": {"create", (*refuser).tomorrow},
		"stopping a Run": {"patch", func(r *refuser) { r.tomorrow(); r.tomorrow() }},
		"deleting a Run": {"delete", func(r *refuser) { r.tomorrow(); r.tomorrow(); r.ended() }},
	} {
		for class, f := range apierrtest.Failures() {
			t.Run(what+": "+class, func(t *testing.T) {
				s := nightly(policy(v1alpha1.ConcurrencyReplace), func(s *v1alpha1.Schedule) { *s.Spec.SuccessfulRunsHistoryLimit = 0 })
				r := &refuser{apierrtest.NewServer(t, []client.Object{s}), t}
				w.before(r)
				r.checkRefusal(w.verb, f)
			})
		}
	}
}

// A write is a kind of request, and what brings the operator to send it.
type write struct {
	verb   string
	before func(*refuser)
}

// checkRefusal has each request with a verb fail, and checks what the Schedule says
// while they do and after.
func (r *refuser) checkRefusal(verb string, f apierrtest.Failure) {
	r.t.Helper()
	n := r.RefuseAll(verb, "Run", f)
	err := r.reconcile()
	told := r.get()
	if *n == 0 || f.Transient == (err == nil) {
		r.t.Errorf("asked %d times, Reconcile() = %v", *n, err)
	}
	if ready := told.Status.Conditions[0]; !strings.Contains(ready.Message, f.Want) {
		r.t.Errorf("Ready is %q, want it to name %q", ready.Message, f.Want)
	}
	if told.Status.Missed != 0 {
		r.t.Errorf("%d times are missed", told.Status.Missed)
	}
	_ = r.reconcile()
	if now := r.get(); now.ResourceVersion != told.ResourceVersion && verb != "delete" {
		r.t.Errorf("the status changed from %q to %q", told.Status.Conditions[0].Message, now.Status.Conditions[0].Message)
	}
	r.Refuse = nil
	for range 2 {
		if err := r.reconcile(); err != nil {
			r.t.Fatal(err)
		}
	}
	if ready := r.get().Status.Conditions[0]; strings.Contains(ready.Message, f.Want) {
		r.t.Errorf("it is done, and Ready is still %q", ready.Message)
	}
}
