package controller_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/controller/decision"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// createDecision makes a Decision as the API server's administrator, in whose name it
// must then be.
func (b *fixture) createDecision(name string, spec v1alpha1.DecisionSpec) {
	b.t.Helper()
	spec.Run, spec.By = b.run.Name, "admin"
	b.Create(b.t, &v1alpha1.Decision{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}, Spec: spec})
}

// A stale cache shows a Run as it was.
type stale struct {
	client.Client
	run *v1alpha1.Run
}

// Get implements [client.Reader].
func (s stale) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if run, is := o.(*v1alpha1.Run); is {
		s.run.DeepCopyInto(run)
		return nil
	}
	return s.Client.Get(ctx, key, o, opts...)
}

// reconcileDecision reconciles a Decision until it no longer changes, from what the cache shows;
// nil: it shows what there is.
func (b *fixture) reconcileDecision(name string, cache client.Client) *v1alpha1.Decision {
	b.t.Helper()
	if cache == nil {
		cache = b.operator
	}
	var d v1alpha1.Decision
	for range 3 {
		if err := b.Admin.Get(b.t.Context(), client.ObjectKey{Namespace: b.namespace, Name: name}, &d); err != nil {
			b.t.Fatal(err)
		}
		if _, err := decision.New(cache, b.operator, b.events, func() time.Time { return b.now }).Reconcile(b.t.Context(), &d); err != nil {
			b.t.Fatalf("reconciling the Decision: %v", err)
		}
	}
	return &d
}

func applied(d *v1alpha1.Decision) string {
	for _, c := range d.Status.Conditions {
		if c.Type == v1alpha1.ConditionApplied {
			return string(c.Status) + " " + c.Reason + " " + c.Message
		}
	}
	return ""
}

// receivedDecisions are the Decisions in the signals of the only pod.
func (b *fixture) receivedDecisions() []task.Decision {
	b.t.Helper()
	var s task.Signals
	if text := b.onlyPod().Annotations[v1alpha1.AnnotationSignals]; text != "" {
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			b.t.Fatal(err)
		}
	}
	return s.Decisions
}

// askQuestions has the runner of the only pod ask questions.
func (b *fixture) askQuestions(ids ...string) {
	b.t.Helper()
	b.reconcileUntilStable()
	b.startRunner(b.onlyPod())
	p := task.Progress{Attempt: 1, State: v1alpha1.ReasonAwaitingAnswer}
	for _, id := range ids {
		p.Pending = append(p.Pending, task.Pending{ID: id, Kind: task.PendingQuestion, Question: "Which branch?", AskedAt: b.now.UTC().Format(time.RFC3339)})
	}
	if err := b.report(b.onlyPod(), p); err != nil {
		b.t.Fatal(err)
	}
	b.reconcileUntilStable()
	b.expect("Unknown AwaitingAnswer")
}

// recordedEvents returns the events recorded since the last call.
func (b *fixture) recordedEvents() []string {
	var out []string
	for len(b.events.Events) > 0 {
		out = append(out, <-b.events.Events)
	}
	return out
}

// A question is asked, answered once, and both sides can see what became of it.
func TestAQuestionIsAnswered(t *testing.T) {
	b := newFixture(t)
	b.askQuestions("s3c1")
	if text := message(b.get()); !strings.Contains(text, "Which branch?") || !strings.Contains(text, "named x.s3c1") {
		t.Errorf("the message is %q", text)
	}
	b.createDecision("x.s3c1", v1alpha1.DecisionSpec{Request: "s3c1", Type: v1alpha1.DecisionAnswer, Value: "main"})
	b.reconcileUntilStable()
	if got := b.receivedDecisions(); len(got) != 0 {
		t.Errorf("before the Run owns the Decision the runner gets %+v", got)
	}
	b.reconcileDecision("x.s3c1", nil)
	b.reconcileUntilStable()
	if got := b.receivedDecisions(); len(got) != 1 || !got[0].Equal(task.Decision{Name: "x.s3c1", By: "admin", Request: "s3c1", Type: task.DecisionAnswer, Value: "main"}) {
		t.Fatalf("the runner hears %+v", got)
	}
	d := b.reconcileDecision("x.s3c1", nil)
	if !strings.HasPrefix(applied(d), "Unknown Waiting On its way") {
		t.Errorf("Applied is %s", applied(d))
	}
	if len(d.OwnerReferences) != 1 || d.OwnerReferences[0].UID != b.run.UID {
		t.Errorf("its owners are %+v", d.OwnerReferences)
	}
	if err := b.report(b.onlyPod(), task.Progress{Attempt: 1, Decided: []task.Decided{{Name: "x.s3c1", Request: "s3c1"}}}); err != nil {
		t.Fatal(err)
	}
	b.now = b.now.Add(2 * time.Second)
	b.reconcileUntilStable() // tells the runner no more, which changes nothing of the Run
	b.reconcileUntilStable()
	b.expect("Unknown Running")
	if got := b.receivedDecisions(); len(got) != 0 {
		t.Errorf("the runner still hears %+v", got)
	}
	if d := b.reconcileDecision("x.s3c1", nil); applied(d) != "True Applied The runner acted on it" {
		t.Errorf("Applied is %s", applied(d))
	}
	before := b.reconcileDecision("x.s3c1", nil).ResourceVersion
	if after := b.reconcileDecision("x.s3c1", nil).ResourceVersion; after != before {
		t.Error("a second look at the same wrote again")
	}
}

func TestWhatNobodyAskedIsRefused(t *testing.T) {
	b := newFixture(t)
	b.askQuestions("s3c1", "s3c2")
	b.createDecision("x.s4c1", v1alpha1.DecisionSpec{Request: "s4c1", Type: v1alpha1.DecisionAnswer, Value: "main"})
	b.createDecision("any", v1alpha1.DecisionSpec{Type: v1alpha1.DecisionAnswer, Value: "main"})
	b.reconcileUntilStable()
	for name, want := range map[string]string{
		"x.s4c1": "False Refused Run x does not wait for s4c1; it waits for s3c1, s3c2",
		"any":    "False Refused Run x waits for more than one Answer: name one in spec.request (s3c1, s3c2)",
	} {
		if got := applied(b.reconcileDecision(name, nil)); got != want {
			t.Errorf("Applied of %s is %s, want %s", name, got, want)
		}
	}
	if got := b.receivedDecisions(); len(got) != 0 {
		t.Errorf("the runner hears %+v", got)
	}
}

// After a Decision was refused, the Run, the Decision and the events of both name the
// next Decision to create.
func TestARefusalNamesTheNextDecision(t *testing.T) {
	b := newFixture(t)
	b.askQuestions("s3c1")
	b.createDecision("x.s3c1", v1alpha1.DecisionSpec{Request: "s3c1", Type: v1alpha1.DecisionDeny})
	b.recordedEvents()
	d := b.reconcileDecision("x.s3c1", nil)
	b.reconcileUntilStable()
	if got := applied(d); !strings.HasPrefix(got, "False Refused Request s3c1 is of kind Question: use the type Answer") || !strings.HasSuffix(got, ". Create Decision x.s3c1.2") {
		t.Errorf("Applied is %s", got)
	}
	if text := message(b.get()); !strings.Contains(text, "kubectl create a Decision named x.s3c1.2 with spec") {
		t.Errorf("the message of the Run is %q", text)
	}
	want := []string{"Warning Refused " + strings.TrimPrefix(applied(d), "False Refused ")} // the request had its event
	if diff := cmp.Diff(want, b.recordedEvents()); diff != "" {
		t.Errorf("events -want +got:\n%s", diff)
	}
}

// A person may see a question before the operator's cache does.
func TestALateCacheRefusesNothing(t *testing.T) {
	b := newFixture(t)
	old := stale{b.operator, b.get()}
	b.askQuestions("s3c1")
	b.createDecision("x.s3c1", v1alpha1.DecisionSpec{Request: "s3c1", Type: v1alpha1.DecisionAnswer, Value: "main"})
	old.run.Status.Attempt = &v1alpha1.Attempt{Number: 1}
	old.run.Status.Progress = &v1alpha1.RunProgress{Attempt: 1}
	if got := applied(b.reconcileDecision("x.s3c1", old)); !strings.HasPrefix(got, "Unknown Waiting") {
		t.Errorf("Applied is %s", got)
	}
}
