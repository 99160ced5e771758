package decision

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

func answering(request string) *v1alpha1.Decision {
	return &v1alpha1.Decision{
		ObjectMeta: metav1.ObjectMeta{Namespace: gen.Namespace, Name: "x." + request, Generation: 1},
		Spec:       v1alpha1.DecisionSpec{Run: "x", Request: request, Type: v1alpha1.DecisionAnswer, Value: "main", By: "ann"},
	}
}

func runWithQuestion(mods ...func(*v1alpha1.Run)) *v1alpha1.Run {
	run := gen.Run(func(r *v1alpha1.Run) {
		r.Status.Attempt = &v1alpha1.Attempt{Number: 1}
		r.Status.Progress = &v1alpha1.RunProgress{Attempt: 1, Pending: []v1alpha1.PendingRequest{{ID: "s3c1", Kind: task.PendingQuestion}}}
	})
	for _, mod := range mods {
		mod(run)
	}
	return run
}

func acted(r *v1alpha1.Run) {
	r.Status.Progress.Pending = nil
	r.Status.Progress.Decided = []v1alpha1.DecidedRequest{{Name: "x.s3c1", Request: "s3c1"}}
}

func TestDecide(t *testing.T) {
	cases := map[string]struct {
		run  *v1alpha1.Run
		want string
	}{
		"it is on its way":          {runWithQuestion(), "Unknown Waiting On its way"},
		"the runner acted on it":    {runWithQuestion(acted), "True Applied The runner acted on it"},
		"nobody asked":              {runWithQuestion(func(r *v1alpha1.Run) { r.Status.Progress.Pending = nil }), "False Refused Run x does not wait for s3c1"},
		"nobody is there":           {nil, `False Refused Run "x" not found`},
		"its message is not longer": {runWithQuestion(func(r *v1alpha1.Run) { r.Status.Progress.Pending = many(10) }), "False Refused Run x does not wait for s3c1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := decide(state{decision: answering("s3c1"), run: tc.run, now: gen.Noon}).applied
			if got := string(c.Status) + " " + c.Reason + " " + c.Message; c.Type != v1alpha1.ConditionApplied || !strings.HasPrefix(got, tc.want) || len(c.Message) > task.MaxMessage {
				t.Errorf("decide() = %s: %s, want %s", c.Type, got, tc.want)
			}
		})
	}
}

func many(n int) []v1alpha1.PendingRequest {
	var out []v1alpha1.PendingRequest
	for range n {
		out = append(out, v1alpha1.PendingRequest{ID: strings.Repeat("i", 200)})
	}
	return out
}

// What is reported once is not reported again, and a time is that of a change.
func TestEveryDecisionSettles(t *testing.T) {
	o := state{decision: answering("s3c1"), run: runWithQuestion(), now: gen.Noon}
	o.decision.Status = statusOf(o, decide(o).applied)
	o.now = o.now.AddDate(1, 0, 0)
	if diff := cmp.Diff(o.decision.Status, statusOf(o, decide(o).applied)); diff != "" {
		t.Errorf("a settled Decision moves:\n%s", diff)
	}
}

func TestWhichChangesOfARunMatter(t *testing.T) {
	cases := map[string]struct {
		change func(*v1alpha1.Run)
		want   bool
	}{
		"a step more":              {func(r *v1alpha1.Run) { r.Status.Progress.Sequence++ }, false},
		"it asks something more":   {func(r *v1alpha1.Run) { r.Status.Progress.Pending = many(1) }, true},
		"it acted on something":    {acted, true},
		"another attempt":          {func(r *v1alpha1.Run) { r.Status.Attempt.Number++ }, true},
		"that attempt reports":     {func(r *v1alpha1.Run) { r.Status.Progress.Attempt++ }, true},
		"it has finished":          {func(r *v1alpha1.Run) { r.Status.CompletionTime = &metav1.Time{Time: gen.Noon} }, true},
		"somebody puts a label on": {func(r *v1alpha1.Run) { r.Labels = map[string]string{"a": "b"} }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := runChanged.Update(event.UpdateEvent{ObjectOld: runWithQuestion(), ObjectNew: runWithQuestion(tc.change)}); got != tc.want {
				t.Errorf("it matters: %t", got)
			}
		})
	}
}

// The Run of a workflow has no attempt, and is heard all the same.
func TestWhatAWorkflowAsksMatters(t *testing.T) {
	of := func(p *v1alpha1.RunProgress) *v1alpha1.Run {
		return gen.Run(func(r *v1alpha1.Run) { r.Spec.Agent, r.Spec.Workflow, r.Status.Progress = "", "release", p })
	}
	asks := of(&v1alpha1.RunProgress{Pending: []v1alpha1.PendingRequest{{ID: "approval-gate", Kind: task.PendingApproval, Digest: "d1"}}})
	goesOn := of(&v1alpha1.RunProgress{Decided: []v1alpha1.DecidedRequest{{Name: "x.approval-gate"}}})
	for what, e := range map[string]event.UpdateEvent{
		"that it asks":    {ObjectOld: of(nil), ObjectNew: asks},
		"that it goes on": {ObjectOld: asks, ObjectNew: goesOn},
	} {
		if !runChanged.Update(e) {
			t.Errorf("%s does not matter", what)
		}
	}
	if runChanged.Update(event.UpdateEvent{ObjectOld: of(nil), ObjectNew: of(&v1alpha1.RunProgress{State: "Running"})}) {
		t.Error("that it works matters")
	}
}
