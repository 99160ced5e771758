package schedule

import (
	"context"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/condition"
	"github.com/deckhand-dev/deckhand/internal/denial/denialtest"
	"github.com/deckhand-dev/deckhand/internal/gen"
)

// A refuser is an API server that refuses some writes.
type refuser struct {
	t      *testing.T
	client client.WithWatch
	refuse func(verb, name string) error // nil: nothing
	now    time.Time
}

func newRefuser(t *testing.T, s *v1alpha1.Schedule) *refuser {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	r := &refuser{t: t, now: gen.Noon}
	ask := func(verb string, o client.Object) error {
		if r.refuse == nil {
			return nil
		}
		return r.refuse(verb, o.GetName())
	}
	r.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(s).WithStatusSubresource(&v1alpha1.Schedule{}, &v1alpha1.Run{}).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				if err := ask("create", o); err != nil {
					return err
				}
				o.SetUID(types.UID(o.GetName()))
				return c.Create(ctx, o, opts...)
			},
			Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
				if err := ask("patch", o); err != nil {
					return err
				}
				return c.Patch(ctx, o, p, opts...)
			},
			Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
				if err := ask("delete", o); err != nil {
					return err
				}
				return c.Delete(ctx, o, opts...)
			},
		}).Build()
	return r
}

func (r *refuser) reconcile() error {
	r.t.Helper()
	reconciler := New(r.client, r.client, events.NewFakeRecorder(100), func() time.Time { return r.now })
	_, err := reconciler.Reconcile(r.t.Context(), r.get())
	return err
}

func (r *refuser) get() *v1alpha1.Schedule {
	r.t.Helper()
	var s v1alpha1.Schedule
	if err := r.client.Get(r.t.Context(), client.ObjectKeyFromObject(nightly()), &s); err != nil {
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
	r.now = next.Time
}

// ended ends all Runs.
func (r *refuser) ended() {
	r.t.Helper()
	var list v1alpha1.RunList
	if err := r.client.List(r.t.Context(), &list); err != nil {
		r.t.Fatal(err)
	}
	for i := range list.Items {
		run, now := &list.Items[i], metav1.NewTime(r.now)
		run.Status.CompletionTime = &now
		run.Status.Conditions = condition.Merge(nil, now, 1, metav1.Condition{Type: v1alpha1.ConditionSucceeded, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonFinished})
		if err := r.client.Status().Update(r.t.Context(), run); err != nil {
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
		for class, f := range denialtest.Failures() {
			t.Run(what+": "+class, func(t *testing.T) {
				r := newRefuser(t, nightly(policy(v1alpha1.ConcurrencyReplace), func(s *v1alpha1.Schedule) { *s.Spec.SuccessfulRunsHistoryLimit = 0 }))
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
func (r *refuser) checkRefusal(verb string, f denialtest.Failure) {
	r.t.Helper()
	n := 0
	r.refuse = func(is, name string) error {
		if is != verb {
			return nil
		}
		n++
		return f.Err(is, "Run", name, n)
	}
	err := r.reconcile()
	told := r.get()
	if n == 0 || f.Passes == (err == nil) {
		r.t.Errorf("asked %d times, Reconcile() = %v", n, err)
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
	r.refuse = nil
	for range 2 {
		if err := r.reconcile(); err != nil {
			r.t.Fatal(err)
		}
	}
	if ready := r.get().Status.Conditions[0]; strings.Contains(ready.Message, f.Want) {
		r.t.Errorf("it is done, and Ready is still %q", ready.Message)
	}
}
