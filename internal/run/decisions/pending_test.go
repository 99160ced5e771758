package decisions_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/decisions"
	"github.com/deckhand-dev/deckhand/internal/shared/digest"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// What a model writes into a question cannot leave its line, or drown the rest.
func TestAQuestionIsQuotedSafely(t *testing.T) {
	text := decisions.PendingMessage("x", []v1alpha1.PendingRequest{{ID: "s3c1", Kind: task.PendingQuestion, Question: "\x1b[2Jrm?\n\n" + strings.Repeat("y", 2000)}}, nil)
	if strings.ContainsAny(text, "\x1b\n") || len(text) > task.MaxMessage || !strings.Contains(text, "[2Jrm? yyy") || !strings.Contains(text, "a Decision named x.s3c1") {
		t.Errorf("the message is %q", text)
	}
	text = decisions.PendingMessage("x", []v1alpha1.PendingRequest{{ID: "s3c1", Kind: task.PendingQuestion, Question: "ok?” To answer, kubectl create a Decision named x.evil ❞ ”"}}, []string{"x.s3c1"})
	if strings.Count(text, "”") != 1 || !strings.Contains(text, "” To answer, kubectl create a Decision named x.s3c1.2 with spec") {
		t.Errorf("the message is %q", text)
	}
	p := v1alpha1.PendingRequest{ID: strings.Repeat("i", task.MaxRequest), Kind: task.PendingLimit, Agent: strings.Repeat("a", task.MaxAsker), Question: strings.Repeat("ä", 512)}
	if text := decisions.PendingMessage(strings.Repeat("r", 63), []v1alpha1.PendingRequest{p, p}, nil); len(text) > task.MaxMessage || !strings.Contains(text, "1 more in status") {
		t.Errorf("the longest message has %d bytes: %s", len(text), text)
	}
}

func TestTheHintOfAMessageIsLeftOut(t *testing.T) {
	ask := func(questions ...string) []v1alpha1.PendingRequest {
		var out []v1alpha1.PendingRequest
		for _, q := range questions {
			out = append(out, v1alpha1.PendingRequest{ID: "s3c1", Kind: task.PendingQuestion, Question: q})
		}
		return out
	}
	long := decisions.PendingMessage("x", ask("Which?", "And?"), nil)
	for name, tc := range map[string]struct{ message, want string }{
		"a question":                     {decisions.PendingMessage("x", ask("Which?"), nil), "It asks: “Which?”"},
		"several":                        {long, "It asks: “Which?”; 1 more in status.progress.pending"},
		"a deadline follows":             {long + ". Waits until 05:48:00 UTC (limits.wait)", "It asks: “Which?”; 1 more in status.progress.pending. Waits until 05:48:00 UTC (limits.wait)"},
		"the message was cut":            {long[:len("It asks: “Which?” To answer, kubectl create a Decision named x.s3")], "It asks: “Which?”"},
		"a model writes such a hint":     {decisions.PendingMessage("x", ask("a” To answer, kubectl create a Decision named b, by: <your user name>}"), nil), `It asks: “a' To answer, kubectl create a Decision named b, by: <your user name>}”`},
		"a user has such a name":         {decisions.PendingMessage("x", []v1alpha1.PendingRequest{{ID: "s3c1", Kind: task.PendingQuestion, Question: "Which?", Approvers: &v1alpha1.Approvers{Users: []string{"a, by: <your user name>}; b"}}}}, nil), "It asks: “Which?”"},
		"a group has such a name":        {decisions.PendingMessage("x", []v1alpha1.PendingRequest{{ID: "s3c1", Kind: task.PendingQuestion, Question: "Which?", Approvers: &v1alpha1.Approvers{Groups: []string{"a, by: <your user name>}; b"}}}}, nil), "It asks: “Which?”"},
		"a message that is no request's": {"Attempt 1 works", "Attempt 1 works"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := decisions.TrimHint(tc.message); got != tc.want {
				t.Errorf("TrimHint() = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestAMessageAsksMore(t *testing.T) {
	ask := func(taken []string, questions ...string) string {
		var pending []v1alpha1.PendingRequest
		for _, q := range questions {
			pending = append(pending, v1alpha1.PendingRequest{ID: "s3c1", Kind: task.PendingQuestion, Question: q})
		}
		return decisions.PendingMessage("x", pending, taken)
	}
	for name, tc := range map[string]struct {
		before, after string
		want          bool
	}{
		"another question":              {ask(nil, "Which?"), ask(nil, "And?"), true},
		"another name for the Decision": {ask(nil, "Which?"), ask([]string{"x.s3c1"}, "Which?"), false},
		"one more":                      {ask(nil, "Which?", "a?"), ask(nil, "Which?", "a?", "b?"), true},
		"one less":                      {ask(nil, "Which?", "a?", "b?"), ask(nil, "Which?", "a?"), false},
		"the last of several":           {ask(nil, "Which?", "a?"), ask(nil, "Which?"), false},
		"an empty question":             {"”; 1 more in status.progress.pending", "”; 1 more in status.progress.pending, of which it was", false},
		"one more than an empty one":    {"”; 1 more in status.progress.pending", "”; 2 more in status.progress.pending", true},
		"no request":                    {"Attempt 1 works", "Attempt 2 works", true},
		"the same state":                {"Attempt 1 works", "Attempt 1 works", false},
	} {
		if got := decisions.AsksMore(tc.before, tc.after); got != tc.want {
			t.Errorf("%s: AsksMore() = %t", name, got)
		}
	}
}

func TestARequestOfAnEarlierAttemptWasAskedBefore(t *testing.T) {
	at := func(minutes int) *metav1.Time {
		return &metav1.Time{Time: time.Date(2026, 1, 1, 12, minutes, 0, 0, time.UTC)}
	}
	second := &v1alpha1.Attempt{Number: 2, StartedAt: *at(5)}
	asked := func(at *metav1.Time) v1alpha1.PendingRequest {
		return v1alpha1.PendingRequest{ID: "s1c1", Kind: task.PendingQuestion, AskedAt: at}
	}
	for name, tc := range map[string]struct {
		attempt *v1alpha1.Attempt
		pending []v1alpha1.PendingRequest
		want    bool
	}{
		"the attempt before asked it":              {second, []v1alpha1.PendingRequest{asked(at(4))}, true},
		"this attempt asks it":                     {second, []v1alpha1.PendingRequest{asked(at(6))}, false},
		"this attempt asks another":                {second, []v1alpha1.PendingRequest{asked(at(4)), asked(at(6))}, false},
		"the time is not known":                    {second, []v1alpha1.PendingRequest{asked(nil)}, false},
		"the clock of the first attempt runs late": {&v1alpha1.Attempt{Number: 1, StartedAt: *at(5)}, []v1alpha1.PendingRequest{asked(at(4))}, false},
		"the Run of a Workflow, which has no pod":  {nil, []v1alpha1.PendingRequest{asked(at(4))}, false},
		"a child Run is asked for besides":         {second, []v1alpha1.PendingRequest{asked(at(4)), {ID: "d", Kind: task.PendingDelegation, AskedAt: at(6)}}, true},
	} {
		if got := decisions.AskedBefore(tc.pending, tc.attempt); got != tc.want {
			t.Errorf("%s: AskedBefore() = %t", name, got)
		}
	}
}

// A request whose id does not end in its digest is approved with the digest only.
func TestAMessageSaysHowToDecide(t *testing.T) {
	sum := strings.Repeat("d", 64)
	for name, tc := range map[string]struct {
		request v1alpha1.PendingRequest
		want    string
	}{
		"a question":                          {v1alpha1.PendingRequest{ID: "s3c1", Kind: task.PendingQuestion}, "type: Answer, value: '…'"},
		"a limit":                             {v1alpha1.PendingRequest{ID: "limit-steps-9", Kind: task.PendingLimit}, "type: Grant, grant: {steps: 20}"},
		"a limit of tokens":                   {v1alpha1.PendingRequest{ID: "limit-tokens-900", Kind: task.PendingLimit}, "type: Grant, grant: {tokens: 50k}"},
		"a limit of cost":                     {v1alpha1.PendingRequest{ID: "limit-cost-900", Kind: task.PendingLimit}, "type: Grant, grant: {cost: 1USD}"},
		"a call whose id has no digest":       {v1alpha1.PendingRequest{ID: "s3c1", Kind: task.PendingApproval, Args: "{}", Digest: sum}, "type: Approve, digest: " + sum + " (or type: Deny)"},
		"a call whose id ends in the digest":  {v1alpha1.PendingRequest{ID: "s3c1-" + digest.Short(sum), Kind: task.PendingApproval, Args: "{}", Digest: sum}, "type: Approve (or type: Deny)"},
		"an approval that is about no call":   {v1alpha1.PendingRequest{ID: "release", Kind: task.PendingApproval, Digest: sum}, "type: Approve (or type: Deny)"},
		"an approval that asks for something": {v1alpha1.PendingRequest{ID: "release", Kind: task.PendingApproval, Schema: "{}"}, "type: Approve, value: '<JSON for the schema in status.progress.pending>' (or type: Deny)"},
	} {
		if text := decisions.PendingMessage("x", []v1alpha1.PendingRequest{tc.request}, nil); !strings.Contains(text, tc.want) {
			t.Errorf("%s: want %q in %s", name, tc.want, text)
		}
	}
}

// What an approval is for stands behind its arguments, and is not cut off by long ones.
func TestLongArgumentsLeaveRoomForTheQuestion(t *testing.T) {
	p := v1alpha1.PendingRequest{ID: "s3c1", Kind: task.PendingApproval, Tool: "shell", Args: `{"command":"` + strings.Repeat("a", 1000) + `"}`, Question: "It deletes the database."}
	if text := decisions.PendingMessage("x", []v1alpha1.PendingRequest{p}, nil); !strings.Contains(text, "It deletes the database.”") || !strings.Contains(text, "“May I call shell with {") {
		t.Errorf("the message is %s", text)
	}
}

func TestAMessageNamesGroupsOnlyIfThereAreSome(t *testing.T) {
	p := v1alpha1.PendingRequest{ID: "s3c1", Kind: task.PendingQuestion, Question: "Which?"}
	if text := decisions.PendingMessage("x", []v1alpha1.PendingRequest{p}, nil); strings.Contains(text, "groups") {
		t.Errorf("without approvers: %s", text)
	}
	p.Approvers = &v1alpha1.Approvers{Groups: []string{"leads"}}
	if text := decisions.PendingMessage("x", []v1alpha1.PendingRequest{p}, nil); !strings.Contains(text, "groups: [<one of leads>]") {
		t.Errorf("with approvers: %s", text)
	}
	p.Approvers.Users = []string{"ann", "bob"}
	if text := decisions.PendingMessage("x", []v1alpha1.PendingRequest{p}, nil); !strings.Contains(text, "groups: [<one of leads>] (or as user ann, bob), by: <your user name>}") {
		t.Errorf("with groups and users: %s", text)
	}
	p.Approvers.Groups = nil
	if text := decisions.PendingMessage("x", []v1alpha1.PendingRequest{p}, nil); strings.Contains(text, "groups") || !strings.Contains(text, "(only as user ann, bob), by: <your user name>}") {
		t.Errorf("with users: %s", text)
	}
}
