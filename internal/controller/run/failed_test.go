package run

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/denial/denialtest"
	"github.com/deckhand-dev/deckhand/internal/egress"
	"github.com/deckhand-dev/deckhand/internal/gen"
	"github.com/deckhand-dev/deckhand/internal/identity"
	"github.com/deckhand-dev/deckhand/internal/labelindex"
	"github.com/deckhand-dev/deckhand/runner/task"
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

func newRefuser(t *testing.T, run *v1alpha1.Run, agent *v1alpha1.Agent) *refuser {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	run.ResourceVersion = ""
	byRun := func(o client.Object) []string { return []string{o.(*v1alpha1.Decision).Spec.Run} }
	nowhere := func(client.Object) []string { return nil }
	s := &refuser{t: t, now: gen.Noon}
	ask := func(verb string, o client.Object) error {
		if s.refuse == nil {
			return nil
		}
		return s.refuse(verb, reflect.TypeOf(o).Elem().Name(), o.GetName())
	}
	builder := fake.NewClientBuilder().WithScheme(scheme)
	_ = labelindex.Each(func(o client.Object, field string, values client.IndexerFunc) error {
		builder.WithIndex(o, field, values)
		return nil
	})
	s.client = builder.WithObjects(run, agent, gen.Model()).
		WithStatusSubresource(&v1alpha1.Run{}).WithIndex(&v1alpha1.Decision{}, v1alpha1.DecisionsByRun, byRun).
		WithIndex(&corev1.Event{}, "involvedObject.uid", nowhere).WithIndex(&corev1.Event{}, "type", nowhere).
		WithInterceptorFuncs(interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.CreateOption) error {
				if err := ask("create", o); err != nil {
					return err
				}
				o.SetUID(types.UID("uid-" + o.GetName()))
				o.SetCreationTimestamp(metav1.NewTime(s.now))
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
	clock := func() time.Time { return s.now }
	fence := egress.New(s.client, s.client, egress.Options{Servers: egress.PeersPorts, Now: clock})
	s.reconciler = New(s.client, s.client, events.NewFakeRecorder(1000), Options{
		RunnerImage: "runner:1", Guard: unguardedNever{}, Identity: identity.New(s.client, "runner"), Fence: fence, Now: clock,
	})
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
	_, err := s.reconciler.Reconcile(log.IntoContext(s.t.Context(), logr.Discard()), s.get())
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

// change changes the spec of the Run, as a user does.
func (s *refuser) change(change func(*v1alpha1.Run)) {
	s.t.Helper()
	run := s.get()
	change(run)
	if err := s.client.Update(s.t.Context(), run); err != nil {
		s.t.Fatal(err)
	}
}

// report is what the runner writes.
func (s *refuser) report() {
	s.t.Helper()
	run := s.get()
	run.Status.Progress = &v1alpha1.RunProgress{Version: task.Version, Attempt: 1, Sequence: s.now.UnixMilli()}
	s.now = s.now.Add(settleInTime)
	if err := s.client.Status().Update(s.t.Context(), run); err != nil {
		s.t.Fatal(err)
	}
}

func stopRun(r *v1alpha1.Run) { r.Spec.DesiredState = v1alpha1.DesiredStopped }

// problem is what the conditions say: of a final Run, beside what became of it.
func problem(run *v1alpha1.Run) string {
	for _, c := range run.Status.Conditions {
		if c.Type == v1alpha1.ConditionReconciling && isOver(run) && c.Message != "" {
			return c.Message
		}
	}
	return messageOf(run)
}

// A write is a kind of request, and what brings the operator to send it.
type write struct {
	verb, kind string
	before     func(*refuser)
}

// writes are all writes of the operator for a Run, by what brings it there.
var writes = map[string]write{
	"creating the ServiceAccount":        {"create", "ServiceAccount", func(*refuser) {}},
	"creating the RoleBinding":           {"create", "RoleBinding", func(*refuser) {}},
	"creating the ConfigMap":             {"create", "ConfigMap", func(*refuser) {}},
	"creating the PersistentVolumeClaim": {"create", "PersistentVolumeClaim", func(s *refuser) { s.reconcileAll(1) }},
	"creating the NetworkPolicy":         {"create", "NetworkPolicy", func(s *refuser) { s.reconcileAll(1) }},
	"creating the Pod":                   {"create", "Pod", func(s *refuser) { s.reconcileAll(1) }},
	"telling the runner to stop": {"patch", "Pod", func(s *refuser) {
		s.reconcileAll(2)
		s.report()
		s.change(stopRun)
	}},
	"restoring the owner of the Pod": {"patch", "Pod", func(s *refuser) {
		s.reconcileAll(2)
		s.report()
		pod := &corev1.Pod{}
		pod.Namespace, pod.Name = gen.Namespace, "x-1"
		if err := s.client.Patch(s.t.Context(), pod, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"ownerReferences":null}}`))); err != nil {
			s.t.Fatal(err)
		}
	}},
	"deleting the Pod of a final Run": {"delete", "Pod", func(s *refuser) {
		s.reconcileAll(2)
		s.change(stopRun)
		s.reconcileAll(1)
	}},
	"deleting the PersistentVolumeClaim of a final Run": {"delete", "PersistentVolumeClaim", func(s *refuser) {
		s.reconcileAll(2)
		s.change(stopRun)
		s.reconcileAll(3)
		s.now = s.now.Add(48 * time.Hour)
	}},
	"deleting a final Run after its TTL": {"delete", "Run", func(s *refuser) {
		soon := int32(0)
		s.change(func(r *v1alpha1.Run) { r.Spec.TTLSecondsAfterFinished = &soon })
		s.reconcileAll(2)
		s.change(stopRun)
		s.reconcileAll(1)
	}},
}

// What the operator may not do, or is refused, stands in the Run's conditions after
// one pass, and does not change while it lasts.
func TestWhatIsRefusedStandsInTheCondition(t *testing.T) {
	for what, w := range writes {
		for class, f := range denialtest.Failures() {
			t.Run(what+": "+class, func(t *testing.T) {
				s := newRefuser(t, gen.Run(), gen.Agent(onVolume))
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
		s.t.Fatalf("nothing was refused; the Run is %s: %s", reasonOf(told), messageOf(told))
	}
	if f.Passes == (err == nil) {
		s.t.Errorf("Reconcile() = %v; a failure that may pass is an error, a refusal is not", err)
	}
	if text := problem(told); !strings.Contains(text, f.Want) {
		s.t.Errorf("the Run is %s: %q, want it to name %q", reasonOf(told), text, f.Want)
	}
	if isOver(told) {
		return
	}
	_ = s.reconcile()
	if now := s.get(); n < 2 || now.ResourceVersion != told.ResourceVersion {
		s.t.Errorf("asked %d times, the status changed from %q to %q", n, problem(told), problem(now))
	}
	s.refuse = nil
	s.reconcileAll(1)
	if text := problem(s.get()); strings.Contains(text, f.Want) {
		s.t.Errorf("it is done, and the Run still says %q", text)
	}
}

// Where nothing can start, limits.pending ends the Run; a failure that is seen once
// does not.
func TestARefusalEndsWithLimitsPending(t *testing.T) {
	for class, ends := range map[string]string{"the operator lacks the right": v1alpha1.ReasonPendingTimeout, "the server is down": v1alpha1.ReasonStarting} {
		t.Run(class, func(t *testing.T) {
			s := newRefuser(t, gen.Run(), gen.Agent())
			s.reconcileAll(1)
			s.now = s.now.Add(time.Hour) // the operator was away
			s.refuse = func(verb, kind, name string) error {
				if kind != "Pod" {
					return nil
				}
				return denialtest.Failures()[class].Err(verb, kind, name, 1)
			}
			_ = s.reconcile()
			run := s.get()
			if reasonOf(run) != ends || isOver(run) != (ends == v1alpha1.ReasonPendingTimeout) {
				t.Errorf("the Run is %s: %s", reasonOf(run), messageOf(run))
			}
			if text := messageOf(run); !strings.Contains(strings.ToLower(text), "creating pod x-1") {
				t.Errorf("the message is %q", text)
			}
		})
	}
}

// The writer of a ConfigMap that cannot be replaced, since a finalizer keeps it or it is
// written again, is named in the condition.
func TestAConfigMapThatCannotBeReplacedIsNamedInTheCondition(t *testing.T) {
	s := newRefuser(t, gen.Run(), gen.Agent())
	s.reconcileAll(1)
	var versions corev1.ConfigMapList
	if err := s.client.List(t.Context(), &versions); err != nil || len(versions.Items) != 1 {
		t.Fatalf("%d ConfigMaps: %v", len(versions.Items), err)
	}
	other := versions.Items[0].DeepCopy()
	other.Data, other.ResourceVersion, other.Immutable, other.Finalizers = nil, "", nil, []string{"example.com/keep"}
	if err := s.client.Delete(t.Context(), &versions.Items[0]); err != nil {
		t.Fatal(err)
	}
	if err := s.client.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.reconcile(); err == nil {
			t.Error("it is not tried again")
		}
	}
	want := "Creating ConfigMap " + other.Name + " in place of one that another client wrote, which must not write ConfigMaps of this name: an object of this name exists already. The operator tries again"
	if got := messageOf(s.get()); !strings.Contains(got, want) {
		t.Errorf("the message is %q, want %q", got, want)
	}
}
