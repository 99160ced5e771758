package run

import (
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/labelindex"
	"github.com/deckhand-dev/deckhand/internal/run/continuing"
	"github.com/deckhand-dev/deckhand/internal/run/egress"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/internal/run/serviceaccount"
	"github.com/deckhand-dev/deckhand/internal/testing/apierrtest"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A refuser is a Reconciler on an API server that refuses some writes.
type refuser struct {
	*apierrtest.Server
	t          *testing.T
	reconciler *Reconciler
}

type allPoliciesInstalled struct{}

func (allPoliciesInstalled) Missing(string) (string, bool) { return "", true }

func newRefuser(t *testing.T, run *v1alpha1.Run, agent *v1alpha1.Agent) *refuser {
	t.Helper()
	nowhere := func(client.Object) []string { return nil }
	s := &refuser{t: t}
	s.Server = apierrtest.NewServer(t, []client.Object{run, agent, gen.Model()}, func(b *fake.ClientBuilder) {
		_ = labelindex.Each(func(o client.Object, field string, values client.IndexerFunc) error {
			b.WithIndex(o, field, values)
			return nil
		})
		b.WithIndex(&v1alpha1.Run{}, continuing.UnfinishedBySource, continuing.IndexUnfinishedBySource)
		b.WithIndex(&corev1.Event{}, "involvedObject.uid", nowhere).WithIndex(&corev1.Event{}, "type", nowhere)
	})
	clock := func() time.Time { return s.Now }
	policies := egress.New(s, s, egress.Options{Servers: egress.PeersPorts, Now: clock})
	s.reconciler = New(s, s, events.NewFakeRecorder(1000), Options{
		RunnerImage: "runner:1", Guard: allPoliciesInstalled{}, Identity: serviceaccount.New(s, "runner"), NetworkPolicies: policies, Now: clock,
	})
	return s
}

func (s *refuser) get() *v1alpha1.Run {
	s.t.Helper()
	var run v1alpha1.Run
	if err := s.Get(s.t.Context(), client.ObjectKey{Namespace: gen.Namespace, Name: "x"}, &run); err != nil {
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

// begin takes the Run to where its first pod exists and is recorded.
func (s *refuser) begin() {
	s.t.Helper()
	for run := s.get(); run.Status.Attempt == nil || run.Status.Attempt.PodUID == ""; run = s.get() {
		s.reconcileAll(1)
		s.Now = s.Now.Add(recordDelay)
	}
}

// change changes the spec of the Run, as a user does.
func (s *refuser) change(change func(*v1alpha1.Run)) {
	s.t.Helper()
	run := s.get()
	change(run)
	if err := s.Update(s.t.Context(), run); err != nil {
		s.t.Fatal(err)
	}
}

// report is what the runner writes.
func (s *refuser) report() {
	s.t.Helper()
	run := s.get()
	run.Status.Progress = &v1alpha1.RunProgress{Version: task.Version, Attempt: 1, Sequence: s.Now.UnixMilli()}
	s.Now = s.Now.Add(settleInTime)
	if err := s.Status().Update(s.t.Context(), run); err != nil {
		s.t.Fatal(err)
	}
}

func stopRun(r *v1alpha1.Run) { r.Spec.DesiredState = v1alpha1.DesiredStopped }

// problem is what the conditions say: of a final Run, beside what became of it.
func problem(run *v1alpha1.Run) string {
	for _, c := range run.Status.Conditions {
		if c.Type == v1alpha1.ConditionReconciling && runstatus.IsFinished(run) && c.Message != "" {
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
		if err := s.Patch(s.t.Context(), pod, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"ownerReferences":null}}`))); err != nil {
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
		s.Now = s.Now.Add(48 * time.Hour)
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
	if testing.Short() {
		t.Skip("has one goroutine, so it runs without the race detector")
	}
	for what, w := range writes {
		for class, f := range apierrtest.Failures() {
			t.Run(what+": "+class, func(t *testing.T) {
				s := newRefuser(t, gen.Run(), gen.Agent(onVolume))
				w.before(s)
				s.Check(t, w.verb, w.kind, f, s.subject())
			})
		}
	}
}

// subject is the Run.
func (s *refuser) subject() apierrtest.Subject {
	return apierrtest.Subject{
		Reconcile: s.reconcile,
		Says:      func() string { return problem(s.get()) },
		Version:   func() string { return s.get().ResourceVersion },
		Final:     func() bool { return runstatus.IsFinished(s.get()) },
	}
}

// Where nothing can start, limits.pending ends the Run; a failure that is seen once
// does not.
func TestARefusalEndsWithLimitsPending(t *testing.T) {
	for class, ends := range map[string]string{"the operator lacks the right": v1alpha1.ReasonPendingTimeout, "the server is down": v1alpha1.ReasonStarting} {
		t.Run(class, func(t *testing.T) {
			s := newRefuser(t, gen.Run(), gen.Agent(onVolume))
			s.reconcileAll(1)
			s.Now = s.Now.Add(time.Hour) // the operator was away
			s.Refuse = func(verb, kind, name string) error {
				if kind != "Pod" {
					return nil
				}
				return apierrtest.Failures()[class].Err(verb, kind, name, 1)
			}
			_ = s.reconcile()
			run := s.get()
			if reasonOf(run) != ends || runstatus.IsFinished(run) != (ends == v1alpha1.ReasonPendingTimeout) {
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
	if err := s.List(t.Context(), &versions); err != nil || len(versions.Items) != 1 {
		t.Fatalf("%d ConfigMaps: %v", len(versions.Items), err)
	}
	other := versions.Items[0].DeepCopy()
	other.Data, other.ResourceVersion, other.Immutable, other.Finalizers = nil, "", nil, []string{"example.com/keep"}
	if err := s.Delete(t.Context(), &versions.Items[0]); err != nil {
		t.Fatal(err)
	}
	if err := s.Create(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.reconcile(); err == nil {
			t.Error("it is not tried again")
		}
	}
	want := "Creating ConfigMap " + other.Name + " in place of a ConfigMap that another client wrote, which must not write ConfigMaps of this name: an object of this name exists already. The operator tries again"
	if got := messageOf(s.get()); !strings.Contains(got, want) {
		t.Errorf("the message is %q, want %q", got, want)
	}
}
