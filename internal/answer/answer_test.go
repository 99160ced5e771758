package answer_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/answer"
	"github.com/deckhand-dev/deckhand/internal/gen"
)

// asking is a Run at its second attempt whose runner waits for what is said.
func asking(pending ...v1alpha1.PendingRequest) *v1alpha1.Run {
	return gen.Run(func(r *v1alpha1.Run) {
		r.Status.Attempt = &v1alpha1.Attempt{Number: 2}
		r.Status.Progress = &v1alpha1.RunProgress{Attempt: 2, Pending: pending}
	})
}

func decided(run *v1alpha1.Run, name, refused string) *v1alpha1.Run {
	run.Status.Progress.Decided = []v1alpha1.DecidedRequest{{Name: name, Refused: refused}}
	return run
}

func finished(run *v1alpha1.Run) *v1alpha1.Run {
	now := metav1.NewTime(gen.Noon)
	run.Status.CompletionTime = &now
	return run
}

func begun(run *v1alpha1.Run, at time.Time) *v1alpha1.Run {
	run.Status.Attempt.StartedAt = metav1.NewTime(at)
	return run
}

func made(d *v1alpha1.Decision, at time.Time) *v1alpha1.Decision {
	d.CreationTimestamp = metav1.NewTime(at)
	return d
}

func owned(d *v1alpha1.Decision, by types.UID) *v1alpha1.Decision {
	d.OwnerReferences = []metav1.OwnerReference{{Kind: "Run", Name: d.Spec.Run, UID: by}}
	return d
}

func decision(kind v1alpha1.DecisionType, request string) *v1alpha1.Decision {
	return &v1alpha1.Decision{
		ObjectMeta: metav1.ObjectMeta{Namespace: "team-a", Name: "d"},
		Spec:       v1alpha1.DecisionSpec{Run: "x", Request: request, Type: kind},
	}
}

func TestJudge(t *testing.T) {
	const (
		onItsWay = "Unknown On its way to the runner"
		toAnswer = v1alpha1.DecisionAnswer
		toGrant  = v1alpha1.DecisionGrant
		toSay    = v1alpha1.DecisionMessage
	)
	question := v1alpha1.PendingRequest{ID: "s3c1", Kind: "Question"}
	another := v1alpha1.PendingRequest{ID: "s3c2", Kind: "Question"}
	limit := v1alpha1.PendingRequest{ID: "limit-steps-1", Kind: "Limit"}
	unreported := asking(question)
	unreported.Status.Progress.Attempt = 1
	deleted := asking(question)
	deleted.DeletionTimestamp = &metav1.Time{Time: gen.Noon}

	cases := map[string]struct {
		run      *v1alpha1.Run
		decision *v1alpha1.Decision
		want     string
		request  string // what is delivered; "-": nothing
	}{
		"no Run":                           {nil, decision(toAnswer, "s3c1"), `False Run "x" not found in namespace team-a`, "-"},
		"a Run that goes":                  {deleted, decision(toAnswer, "s3c1"), `False Run "x" not found`, "-"},
		"a Run that is not started":        {gen.Run(), decision(toSay, ""), "Unknown Waiting for the runner of Run x to report", "-"},
		"an attempt that has not reported": {unreported, decision(toSay, ""), "Unknown Waiting for the runner", "-"},
		"an answer to one that has not":    {unreported, decision(toAnswer, "s3c1"), "False Run x asks nothing now: its runner has not reported yet", "-"},
		"an answer to the attempt before":  {begun(asking(question), gen.Noon), made(decision(toAnswer, "s3c1"), gen.Noon.Add(-time.Second)), "False It was made before attempt 2 of Run x began, which asks anew; it waits for s3c1", "-"},
		"an answer as soon as it began":    {begun(asking(question), gen.Noon), made(decision(toAnswer, "s3c1"), gen.Noon), onItsWay, "s3c1"},
		"a message to the attempt before":  {begun(asking(), gen.Noon), made(decision(toSay, ""), gen.Noon.Add(-time.Second)), onItsWay, ""},
		"one for this very Run":            {asking(), owned(decision(toSay, ""), asking().UID), onItsWay, ""},
		"one for a Run of that name":       {decided(asking(), "d", ""), owned(decision(toSay, ""), "another"), "False It is for an earlier Run x, which is gone", "-"},
		"a finished Run":                   {finished(asking(question)), decision(toAnswer, "s3c1"), "False Run x has finished", "-"},
		"an answer to a question":          {asking(another, question), decision(toAnswer, "s3c1"), onItsWay, "s3c1"},
		"an answer to nothing":             {asking(), decision(toAnswer, "s3c1"), "False Run x does not wait for s3c1; it asks nothing now", "-"},
		"an answer to something else":      {asking(another, limit), decision(toAnswer, "s3c1"), "False Run x does not wait for s3c1; it waits for s3c2, limit-steps-1", "-"},
		"an answer to a limit":             {asking(limit), decision(toAnswer, "limit-steps-1"), "False limit-steps-1 is a limit: it wants the type Grant, not Answer", "-"},
		"a grant to a question":            {asking(question), decision(toGrant, "s3c1"), "False s3c1 is a question: it wants the type Answer, not Grant", "-"},
		"a grant to a limit":               {asking(limit), decision(toGrant, "limit-steps-1"), onItsWay, "limit-steps-1"},
		"a kind that is not known":         {asking(v1alpha1.PendingRequest{ID: "s3c1", Kind: "Approval"}), decision(toAnswer, "s3c1"), onItsWay, "s3c1"},
		"an answer to the only question":   {asking(limit, question), decision(toAnswer, ""), onItsWay, "s3c1"},
		"a grant to the only limit":        {asking(limit, question), decision(toGrant, ""), onItsWay, "limit-steps-1"},
		"an answer to no question":         {asking(limit), decision(toAnswer, ""), "False Run x waits for no Answer now; to tell it something use the type Message", "-"},
		"an answer to one of two":          {asking(question, another), decision(toAnswer, ""), "False Run x waits for more than one Answer: name one in spec.request (s3c1, s3c2)", "-"},
		"a message":                        {asking(), decision(toSay, ""), onItsWay, ""},
		"one that was acted on":            {decided(asking(), "d", ""), decision(toAnswer, "s3c1"), "True The runner acted on it", "-"},
		"one that was refused":             {decided(asking(question), "d", "too \x1b[2J\nlate"), decision(toAnswer, "s3c1"), "False The runner refused it: too [2J late", "-"},
		"one that ended the Run":           {finished(decided(asking(), "d", "")), decision(toAnswer, "s3c1"), "True The runner acted on it", "-"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := answer.Judge(tc.run, tc.decision)
			if text := string(got.Applied) + " " + got.Message; !strings.HasPrefix(text, tc.want) {
				t.Errorf("Judge() = %q, want %q", text, tc.want)
			}
			if got.Deliver != (tc.request != "-") || got.Deliver && got.Request != tc.request {
				t.Errorf("deliver %t %q, want %q", got.Deliver, got.Request, tc.request)
			}
		})
	}
}

func TestFinal(t *testing.T) {
	for status, want := range map[metav1.ConditionStatus]bool{"": false, metav1.ConditionUnknown: false, metav1.ConditionTrue: true, metav1.ConditionFalse: true} {
		d := decision(v1alpha1.DecisionMessage, "")
		if status != "" {
			d.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionApplied, Status: status}}
		}
		if answer.Final(d) != want {
			t.Errorf("Applied=%s: Final() = %t", status, !want)
		}
	}
}
