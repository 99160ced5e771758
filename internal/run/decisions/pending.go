package decisions

import (
	"fmt"
	"strings"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/internal/shared/digest"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// maxQuoted is the most bytes of a question in a message.
const maxQuoted = 400

// PendingMessage quotes the first request of a Run that users can answer, and says how to
// answer it with a Decision whose name is not in taken.
func PendingMessage(run string, pending []v1alpha1.PendingRequest, taken []string) string {
	people := forUsers(pending)
	if len(people) == 0 {
		return "The runner waits for a person"
	}
	p := people[0]
	who := "It"
	if p.Agent != "" {
		who = "Agent " + untrusted.Words(p.Agent, task.MaxAsker)
	}
	id := untrusted.Words(p.ID, task.MaxRequest)
	said := reply(p) + replyAs(p.Approvers)
	text := fmt.Sprintf("%s asks: %s%s%s with spec {run: %s, request: %s, %s%s", who, subject(p), hint, FreeName(run, id, taken), run, id, said, hintEnd)
	if more := len(people) - 1; more > 0 {
		text += fmt.Sprintf("; %d more in status.progress.pending", more)
	}
	return text
}

// Between hint and hintEnd a message says how to create a Decision. No quoted text contains them,
// because a quote before them is closed and none is in them.
const (
	hint    = " To answer, kubectl create a Decision named "
	hintEnd = ", by: <your user name>}"
)

// TrimHint returns the message of a Run without how to create a Decision with kubectl.
func TrimHint(message string) string {
	question, rest, found := strings.Cut(message, "”"+hint)
	if !found {
		return message
	}
	end := strings.LastIndex(rest, hintEnd)
	if end < 0 {
		return question + "”"
	}
	return question + "”" + rest[end+len(hintEnd):]
}

// AsksMore reports whether a message of PendingMessage shows a request that the message before it
// does not: it quotes another one, or counts more of them.
func AsksMore(before, after string) bool {
	was, is := TrimHint(before), TrimHint(after)
	return was[:questionEnd(was)] != is[:questionEnd(is)] || countMore(is) > countMore(was)
}

// questionEnd is where the quoted question of a message ends.
func questionEnd(message string) int {
	if end := strings.Index(message, "”"); end >= 0 {
		return end
	}
	return len(message)
}

// countMore is how many requests a message counts besides the one that it quotes.
func countMore(message string) int {
	n := 0
	_, _ = fmt.Sscanf(message[questionEnd(message):], "”; %d more in", &n) // 0: it counts none
	return n
}

// AskedBefore reports whether all requests to users are older than an attempt: an earlier attempt
// asked them, and this one asks them again.
func AskedBefore(pending []v1alpha1.PendingRequest, attempt *v1alpha1.Attempt) bool {
	if attempt == nil || attempt.Number == 1 {
		return false
	}
	for _, p := range forUsers(pending) {
		if p.AskedAt == nil || !p.AskedAt.Before(&attempt.StartedAt) {
			return false
		}
	}
	return true
}

// forUsers returns the requests except those that the operator answers with a child Run.
func forUsers(pending []v1alpha1.PendingRequest) []v1alpha1.PendingRequest {
	var out []v1alpha1.PendingRequest
	for _, p := range pending {
		if p.Kind != task.PendingDelegation {
			out = append(out, p)
		}
	}
	return out
}

// subject quotes a request. An approval that is not about a tool call, such as that of a
// workflow's node, is only its question.
func subject(p v1alpha1.PendingRequest) string {
	if p.Kind != task.PendingApproval || p.Args == "" {
		return untrusted.Quote(p.Question, maxQuoted)
	}
	text := fmt.Sprintf("May I call %s with %s?", p.Tool, task.Middle(untrusted.Words(p.Args, task.MaxArgs), maxQuoted*3/4))
	if p.Question != "" {
		text += " " + p.Question
	}
	return untrusted.Quote(text, maxQuoted)
}

// reply returns the fields of a Decision that answers a request.
func reply(p v1alpha1.PendingRequest) string {
	switch p.Kind {
	case task.PendingApproval:
		said := "type: Approve"
		if p.Args != "" && !digest.IsBound(p.ID, p.Digest) {
			said += ", digest: " + untrusted.Words(p.Digest, len(p.Digest))
		}
		if p.Schema != "" {
			said += ", value: '<JSON for the schema in status.progress.pending>'"
		}
		return said + " (or type: Deny)"
	case task.PendingLimit:
		name, example := Grantable(p.ID)
		return fmt.Sprintf("type: Grant, grant: {%s: %s}", name, example)
	default:
		return "type: Answer, value: '…'"
	}
}

// replyAs returns the part of a Decision that depends on who may decide.
func replyAs(a *v1alpha1.Approvers) string {
	said := ""
	if a != nil && len(a.Groups) > 0 {
		said += ", groups: [<one of " + untrusted.Words(strings.Join(a.Groups, ", "), task.MaxAsker) + ">]"
	}
	if a != nil && len(a.Users) > 0 {
		said += " (or as user " + untrusted.Words(strings.Join(a.Users, ", "), task.MaxAsker) + ")"
		if len(a.Groups) == 0 {
			said = strings.Replace(said, "(or as", "(only as", 1)
		}
	}
	return said
}

// Grantable returns the limit that a request is about, a field of a grant, and an example of what is
// added to it. The runner names such a request limit-NAME-USED.
func Grantable(request string) (limit, example string) {
	switch {
	case strings.HasPrefix(request, "limit-tokens-"):
		return "tokens", "50k"
	case strings.HasPrefix(request, "limit-cost-"):
		return "cost", "1USD"
	}
	return "steps", "20"
}
