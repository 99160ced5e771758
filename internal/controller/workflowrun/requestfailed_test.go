package workflowrun

import (
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/apierr/apierrtest"
	"github.com/deckhand-dev/deckhand/internal/gen"
	"github.com/deckhand-dev/deckhand/internal/runstatus"
)

// A refuser is a Reconciler on an API server that refuses some writes.
type refuser struct {
	*apierrtest.Server
	t          *testing.T
	reconciler *Reconciler
}

type unguardedNever struct{}

func (unguardedNever) Missing() string { return "" }

func newRefuser(t *testing.T) *refuser {
	t.Helper()
	agent := gen.Agent(func(a *v1alpha1.Agent) { a.Name = "writer" })
	release := written(t, "release", "nodes:\n- name: a\n  agent: writer\n  prompt: Write it.\n")
	server := &refuser{t: t, Server: apierrtest.NewServer(t, []client.Object{gen.Run(ofWorkflow), agent, gen.Model(), release})}
	server.reconciler = New(server, server, events.NewFakeRecorder(1000), Options{Guard: unguardedNever{}, Now: func() time.Time { return server.Now }})
	return server
}

func (server *refuser) get() *v1alpha1.Run {
	server.t.Helper()
	var run v1alpha1.Run
	if err := server.Get(server.t.Context(), client.ObjectKey{Namespace: gen.Namespace, Name: "x"}, &run); err != nil {
		server.t.Fatal(err)
	}
	return &run
}

func (server *refuser) reconcile() error {
	server.t.Helper()
	_, err := server.reconciler.Reconcile(server.t.Context(), server.get())
	return err
}

func (server *refuser) reconcileAll(times int) {
	server.t.Helper()
	for range times {
		if err := server.reconcile(); err != nil {
			server.t.Fatal(err)
		}
	}
}

func (server *refuser) change(change func(*v1alpha1.Run)) {
	server.t.Helper()
	run := server.get()
	change(run)
	if err := server.Update(server.t.Context(), run); err != nil {
		server.t.Fatal(err)
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
	"creating the child Run": {"create", "Run", func(server *refuser) { server.reconcileAll(1) }},
	"stopping the child Run": {"patch", "Run", func(server *refuser) { server.reconcileAll(2); server.change(stopRun) }},
	"deleting the Run by its TTL": {"delete", "Run", func(server *refuser) {
		soon := int32(0)
		server.change(func(r *v1alpha1.Run) { r.Spec.TTLSecondsAfterFinished = &soon })
		server.change(stopRun)
		server.reconcileAll(1)
	}},
}

// What the operator may not do for the Run of a workflow, or is refused, stands in its
// conditions after one pass, and does not change while it lasts.
func TestWhatIsRefusedStandsInTheCondition(t *testing.T) {
	for what, w := range writes {
		for class, f := range apierrtest.Failures() {
			t.Run(what+": "+class, func(t *testing.T) {
				server := newRefuser(t)
				w.before(server)
				server.Check(t, w.verb, w.kind, f, server.subject())
			})
		}
	}
}

// subject is the Run.
func (server *refuser) subject() apierrtest.Subject {
	return apierrtest.Subject{
		Reconcile: server.reconcile,
		Says:      func() string { return saysOf(server.get()) },
		Version:   func() string { return server.get().ResourceVersion },
		Final:     func() bool { return runstatus.IsFinished(server.get()) },
	}
}

// A version that cannot be stored is waited for, limits.pending at most.
func TestARefusalEndsWithLimitsPending(t *testing.T) {
	server := newRefuser(t)
	server.Refuse = func(verb, kind, name string) error {
		return apierrtest.Failures()["the operator lacks the right"].Err(verb, kind, name, 1)
	}
	server.reconcileAll(1)
	server.Now = server.Now.Add(time.Hour)
	server.reconcileAll(1)
	if is := runstatus.OutcomeOf(server.get().Status); is.Reason != v1alpha1.ReasonPendingTimeout || !strings.Contains(is.Message, "ConfigMap") {
		t.Errorf("the Run ends %s: %s", is.Reason, is.Message)
	}
}
