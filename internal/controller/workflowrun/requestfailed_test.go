package workflowrun

import (
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/continuing"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/internal/testing/apierrtest"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// A refuser is a Reconciler on an API server that refuses some writes.
type refuser struct {
	*apierrtest.Server
	t          *testing.T
	reconciler *Reconciler
}

type allPoliciesInstalled struct{}

func (allPoliciesInstalled) Missing(string) (string, bool) { return "", true }

func newRefuser(t *testing.T) *refuser {
	t.Helper()
	agent := gen.Agent(func(a *v1alpha1.Agent) { a.Name = "writer" })
	release := written(t, "release", "nodes:\n- name: a\n  agent: writer\n  prompt: Write it.\n")
	s := &refuser{t: t, Server: apierrtest.NewServer(t, []client.Object{gen.Run(ofWorkflow), agent, gen.Model(), release}, func(b *fake.ClientBuilder) {
		b.WithIndex(&v1alpha1.Run{}, continuing.UnfinishedBySource, continuing.IndexUnfinishedBySource)
	})}
	s.reconciler = New(s, s, events.NewFakeRecorder(1000), Options{Guard: allPoliciesInstalled{}, Now: func() time.Time { return s.Now }})
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
	if err := s.Update(s.t.Context(), run); err != nil {
		s.t.Fatal(err)
	}
}

func stopRun(r *v1alpha1.Run) { r.Spec.DesiredState = v1alpha1.DesiredStopped }

// saysOf is what the conditions say: of a final Run, beside what became of it.
func saysOf(run *v1alpha1.Run) string {
	for _, c := range run.Status.Conditions {
		if c.Type == v1alpha1.ConditionReconciling && runstatus.IsFinished(run) && c.Message != "" {
			return c.Message
		}
	}
	return runstatus.OutcomeOf(run.Status).Message
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
		for class, f := range apierrtest.Failures() {
			t.Run(what+": "+class, func(t *testing.T) {
				s := newRefuser(t)
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
		Says:      func() string { return saysOf(s.get()) },
		Version:   func() string { return s.get().ResourceVersion },
		Final:     func() bool { return runstatus.IsFinished(s.get()) },
	}
}

// A version that cannot be stored is waited for, limits.pending at most.
func TestARefusalEndsWithLimitsPending(t *testing.T) {
	s := newRefuser(t)
	s.Refuse = func(verb, kind, name string) error {
		return apierrtest.Failures()["the operator lacks the right"].Err(verb, kind, name, 1)
	}
	s.reconcileAll(1)
	s.Now = s.Now.Add(time.Hour)
	s.reconcileAll(1)
	if is := runstatus.OutcomeOf(s.get().Status); is.Reason != v1alpha1.ReasonPendingTimeout || !strings.Contains(is.Message, "ConfigMap") {
		t.Errorf("the Run ends %s: %s", is.Reason, is.Message)
	}
}
