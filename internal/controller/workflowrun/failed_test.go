package workflowrun

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/denial/denialtest"
	"github.com/deckhand-dev/deckhand/internal/gen"
	"github.com/deckhand-dev/deckhand/internal/outcome"
)

// A refuser is an API server that refuses some writes.
type refuser struct {
	t          *testing.T
	client     client.WithWatch
	reconciler *Reconciler
	refuse     func(verb, kind, name string) error // nil: nothing
	now        time.Time
}

type unguardedNever struct{}

func (unguardedNever) Missing() string { return "" }

func newRefuser(t *testing.T) *refuser {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	run := gen.Run(ofWorkflow)
	run.ResourceVersion = ""
	agent := gen.Agent(func(a *v1alpha1.Agent) { a.Name = "writer" })
	release := written(t, "release", "nodes:\n- name: a\n  agent: writer\n  prompt: Write it.\n")
	byRun := func(o client.Object) []string { return []string{o.(*v1alpha1.Decision).Spec.Run} }
	s := &refuser{t: t, now: gen.Noon}
	ask := func(verb string, o client.Object) error {
		if s.refuse == nil {
			return nil
		}
		return s.refuse(verb, reflect.TypeOf(o).Elem().Name(), o.GetName())
	}
	s.client = fake.NewClientBuilder().WithScheme(scheme).WithObjects(run, agent, gen.Model(), release).
		WithStatusSubresource(&v1alpha1.Run{}).WithIndex(&v1alpha1.Decision{}, v1alpha1.DecisionsByRun, byRun).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				if err := ask("create", o); err != nil {
					return err
				}
				o.SetUID(types.UID("uid-" + o.GetName()))
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
	s.reconciler = New(s.client, s.client, events.NewFakeRecorder(1000), Options{Guard: unguardedNever{}, Now: func() time.Time { return s.now }})
	return s
}

func (s *refuser) get() *v1alpha1.Run {
	s.t.Helper()
	var run v1alpha1.Run
	if err := s.client.Get(s.t.Context(), client.ObjectKey{Namespace: gen.Namespace, Name: "x"}, &run); err != nil {
		s.t.Fatal(err)
	}
	return &run
}

func (s *refuser) reconcile() error {
	s.t.Helper()
	_, err := s.reconciler.Reconcile(s.t.Context(), s.get())
	return err
}

func (s *refuser) reconcileAll(times int) {
	s.t.Helper()
	for range times {
		if err := s.reconcile(); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *refuser) change(change func(*v1alpha1.Run)) {
	s.t.Helper()
	run := s.get()
	change(run)
	if err := s.client.Update(s.t.Context(), run); err != nil {
		s.t.Fatal(err)
	}
}

func stopRun(r *v1alpha1.Run) { r.Spec.DesiredState = v1alpha1.DesiredStopped }

// saysOf is what the conditions say: of a final Run, beside what became of it.
func saysOf(run *v1alpha1.Run) string {
	for _, c := range run.Status.Conditions {
		if c.Type == v1alpha1.ConditionReconciling && finished(run) && c.Message != "" {
			return c.Message
		}
	}
	return outcome.Of(run.Status).Message
}

// A write is a kind of request, and what brings the operator to send it.
type write struct {
	verb, kind string
	before     func(*refuser)
}

// writes are the writes of the operator for the Run of a workflow, by what brings it
// there.
var writes = map[string]write{
	"storing the ConfigMap":  {"create", "ConfigMap", func(*refuser) {}},
	"creating the child Run": {"create", "Run", func(s *refuser) { s.reconcileAll(1) }},
	"stopping the child Run": {"patch", "Run", func(s *refuser) { s.reconcileAll(2); s.change(stopRun) }},
	"deleting the Run by its TTL": {"delete", "Run", func(s *refuser) {
		soon := int32(0)
		s.change(func(r *v1alpha1.Run) { r.Spec.TTLSecondsAfterFinished = &soon })
		s.change(stopRun)
		s.reconcileAll(1)
	}},
}

// What the operator may not do for the Run of a workflow, or is refused, stands in its
// conditions after one pass, and does not change while it lasts.
func TestWhatIsRefusedStandsInTheCondition(t *testing.T) {
	for what, w := range writes {
		for class, f := range denialtest.Failures() {
			t.Run(what+": "+class, func(t *testing.T) {
				s := newRefuser(t)
				w.before(s)
				s.checkRefusal(w, f)
			})
		}
	}
}

// checkRefusal has each request of a kind of write fail, and checks what the Run says
// while they do and after.
func (s *refuser) checkRefusal(w write, f denialtest.Failure) {
	s.t.Helper()
	n := 0
	s.refuse = func(verb, kind, name string) error {
		if verb != w.verb || kind != w.kind {
			return nil
		}
		n++
		return f.Err(verb, kind, name, n)
	}
	err := s.reconcile()
	told := s.get()
	if n == 0 {
		s.t.Fatalf("nothing was refused; the Run says %q", saysOf(told))
	}
	if f.Passes == (err == nil) {
		s.t.Errorf("Reconcile() = %v; a failure that may pass is an error, a refusal is not", err)
	}
	if text := saysOf(told); !strings.Contains(text, f.Want) {
		s.t.Errorf("the Run says %q, want it to name %q", text, f.Want)
	}
	if finished(told) {
		return
	}
	_ = s.reconcile()
	if now := s.get(); n < 2 || now.ResourceVersion != told.ResourceVersion {
		s.t.Errorf("asked %d times, the status changed from %q to %q", n, saysOf(told), saysOf(now))
	}
	s.refuse = nil
	s.reconcileAll(1)
	if text := saysOf(s.get()); strings.Contains(text, f.Want) {
		s.t.Errorf("it is done, and the Run still says %q", text)
	}
}

// A version that cannot be stored is waited for, limits.pending at most.
func TestARefusalEndsWithLimitsPending(t *testing.T) {
	s := newRefuser(t)
	s.refuse = func(verb, kind, name string) error {
		return denialtest.Failures()["the operator lacks the right"].Err(verb, kind, name, 1)
	}
	s.reconcileAll(1)
	s.now = s.now.Add(time.Hour)
	s.reconcileAll(1)
	if is := outcome.Of(s.get().Status); is.Reason != v1alpha1.ReasonPendingTimeout || !strings.Contains(is.Message, "ConfigMap") {
		t.Errorf("the Run ends %s: %s", is.Reason, is.Message)
	}
}
