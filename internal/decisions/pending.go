package decisions

import (
	"fmt"
	"strings"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/digest"
	"github.com/deckhand-dev/deckhand/internal/untrusted"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// maxQuoted is how much of a question stands in a message.
const maxQuoted = 400

// PendingMessage quotes the first thing that a Run asks people and says how to answer it.
// What it asks of the operator is not for them.
// The Decision that it names is not among taken.
func PendingMessage(run string, pending []v1alpha1.PendingRequest, taken []string) string {
	people := forPeople(pending)
	if len(people) == 0 {
		return "The runner waits for a person"
	}
	p := people[0]
	who := "It"
	if p.Agent != "" {
		who = "Agent " + untrusted.Line(p.Agent, task.MaxAsker)
	}
	id := untrusted.Line(p.ID, task.MaxRequest)
	said := reply(p)
	if len(p.Approvers.Names()) > 0 {
		said += ", groups: [<one of " + untrusted.Line(strings.Join(p.Approvers.Names(), ", "), task.MaxAsker) + ">]"
	}
	text := fmt.Sprintf("%s asks: %s To answer, kubectl create a Decision named %s with spec {run: %s, request: %s, %s, by: <your user name>}", who, subject(p), FreeName(run, id, taken), run, id, said)
	if more := len(people) - 1; more > 0 {
		text += fmt.Sprintf("; %d more in status.progress.pending", more)
	}
	return text
}

// forPeople are the requests that the operator does not answer itself, with a
// child Run.
func forPeople(pending []v1alpha1.PendingRequest) []v1alpha1.PendingRequest {
	var out []v1alpha1.PendingRequest
	for _, p := range pending {
		if p.Kind != task.PendingDelegation {
			out = append(out, p)
		}
	}
	return out
}

// subject is what is asked, in quotation marks. An approval that is not about a call, as
// that of a workflow's node, is its question alone.
func subject(p v1alpha1.PendingRequest) string {
	if p.Kind != task.PendingApproval || p.Args == "" {
		return untrusted.Quote(p.Question, maxQuoted)
	}
	text := fmt.Sprintf("May I call %s with %s?", p.Tool, task.Middle(untrusted.Line(p.Args, task.MaxArgs), maxQuoted*3/4))
	if p.Question != "" {
		text += " " + p.Question
	}
	return untrusted.Quote(text, maxQuoted)
}

// reply is what a Decision on a request says.
func reply(p v1alpha1.PendingRequest) string {
	switch p.Kind {
	case task.PendingApproval:
		said := "type: Approve"
		if p.Args != "" && !digest.IsBound(p.ID, p.Digest) {
			said += ", digest: " + untrusted.Line(p.Digest, len(p.Digest))
		}
		if p.Schema != "" {
			said += ", value: '<JSON for the schema in status.progress.pending>'"
		}
		return said + " (or type: Deny)"
	case task.PendingLimit:
		return "type: Grant, grant: {steps: 20}"
	default:
		return "type: Answer, value: '…'"
	}
}
