package decisions

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/internal/shared/digest"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// maxQuoted is the maximum length of a question in a message, in bytes.
const maxQuoted = 400

// PendingMessage quotes the first request of a Run that users can answer, and describes how to answer it with a
// Decision whose name is not in taken.
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

// Between hint and hintEnd a message describes how to create a Decision. Quoted texts contain neither, because quotes
// are closed before hint and there is none in between.
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

// questionEnd returns where the quoted question of a message ends.
func questionEnd(message string) int {
	if end := strings.Index(message, "”"); end >= 0 {
		return end
	}
	return len(message)
}

// countMore returns how many further requests a message counts.
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

// forUsers returns the requests for users, without requests that the operator answers with a child Run.
func forUsers(pending []v1alpha1.PendingRequest) []v1alpha1.PendingRequest {
	var out []v1alpha1.PendingRequest
	for _, p := range pending {
		if p.Kind != task.PendingDelegation {
			out = append(out, p)
		}
	}
	return out
}

// subject quotes a request. For an approval without a tool call, such as the approval of a workflow's node, it is only
// the question.
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

// replyAs returns the part of a Decision that depends on the approvers.
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

// Grantable returns the limit in the id of a request to raise a limit, as a field of a grant, and an example of an
// amount. The runner names such a request limit-NAME-USED.
func Grantable(request string) (limit, example string) {
	switch {
	case strings.HasPrefix(request, "limit-tokens-"):
		return "tokens", "50k"
	case strings.HasPrefix(request, "limit-cost-"):
		return "cost", "1USD"
	}
	return "steps", "20"
}

// List returns the Decisions on a Run, oldest first. The client has the index
// DecisionsByRun.
func List(ctx context.Context, c client.Reader, run *v1alpha1.Run) ([]v1alpha1.Decision, error) {
	var list v1alpha1.DecisionList
	if err := c.List(ctx, &list, client.InNamespace(run.Namespace), client.MatchingFields{v1alpha1.DecisionsByRun: run.Name}); err != nil {
		return nil, fmt.Errorf("listing Decisions: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.Decision) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return list.Items, nil
}

// FindMissing returns the result of FirstMissing, if the API server itself does not have the Decision either, because
// the cache can be late.
func FindMissing(ctx context.Context, live client.Reader, run *v1alpha1.Run, decisions []v1alpha1.Decision) (string, error) {
	known := slices.Clone(decisions)
	for last := ""; ; {
		name := FirstMissing(run, known)
		if name == "" || name == last {
			return name, nil
		}
		var d v1alpha1.Decision
		err := live.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: name}, &d)
		switch {
		case apierrors.IsNotFound(err):
			return name, nil
		case err != nil:
			return "", fmt.Errorf("getting Decision %s: %w", name, err)
		}
		known, last = append(known, d), name
	}
}

// FirstMissing returns the name of the first Decision that a Run reports to have applied and that does not exist in
// that form, or was refused; empty: there is none.
func FirstMissing(run *v1alpha1.Run, decisions []v1alpha1.Decision) string {
	if run.Status.Progress == nil {
		return ""
	}
	for _, done := range run.Status.Progress.Decided {
		made := func(d v1alpha1.Decision) bool {
			return d.Name == done.Name && (d.Spec.Run == run.Name && proves(run, &d, done) || ProvesReuse(run, &d, done))
		}
		if done.Refused == "" && !slices.ContainsFunc(decisions, made) {
			return done.Name
		}
	}
	return ""
}

// proves reports whether a Decision can be what a Run reports to have applied. If the report is about a tool
// call, the Decision must be about a tool call, too.
func proves(run *v1alpha1.Run, d *v1alpha1.Decision, done v1alpha1.DecidedRequest) bool {
	if done.Type != "" && done.Type != d.Spec.Type {
		return false
	}
	switch d.Spec.Type {
	case v1alpha1.DecisionApprove:
		return IsApproval(run, d, done.Request, done.Digest) && !isRefused(d)
	case v1alpha1.DecisionDeny:
		return true
	default:
		return done.Digest == ""
	}
}

// IsReused reports whether a Run reports the Decision of another Run, which it retries: <run>.<request> is the name of
// every Decision on a request.
func IsReused(run *v1alpha1.Run, done v1alpha1.DecidedRequest) bool {
	return !strings.HasPrefix(done.Name, run.Name+".")
}

// ProvesReuse reports whether a Decision proves an approval that a Run reports and that was given to a Run which it
// retries. Only the operator makes a Run an owner of it.
func ProvesReuse(run *v1alpha1.Run, d *v1alpha1.Decision, done v1alpha1.DecidedRequest) bool {
	return IsOwner(run.UID, d) && CanReuse(run, d, done)
}

// CanReuse reports whether a Decision can prove such an approval as soon as the Run is an owner of it. A Decision that
// is younger than the Run may have taken the name of a deleted one.
func CanReuse(run *v1alpha1.Run, d *v1alpha1.Decision, done v1alpha1.DecidedRequest) bool {
	s := run.Status
	return run.Spec.Workflow != "" && s.ContinuedFrom != nil && slices.Contains(s.ContinuedFrom.Runs, d.Spec.Run) && d.Spec.Run != run.Name &&
		s.StartTime != nil && !d.CreationTimestamp.After(s.StartTime.Time) &&
		d.Name == done.Name && done.Type == v1alpha1.DecisionApprove && d.Spec.Type == done.Type && done.Digest != "" && proves(run, d, done)
}

// isRefused reports whether the condition Applied of a Decision is False.
func isRefused(d *v1alpha1.Decision) bool {
	return meta.IsStatusConditionFalse(d.Status.Conditions, v1alpha1.ConditionApplied)
}

// FreeName returns a name for the next Decision on a request that is not in taken. The schema
// requires <run>.<request>, or that with a suffix.
func FreeName(run, request string, taken []string) string {
	first := run + "." + request
	name := first
	for n := 2; slices.Contains(taken, name); n++ {
		name = first + "." + strconv.Itoa(n)
	}
	return name
}

// FinalNames returns the names of the Decisions that are applied or refused. The others may
// still be the answer.
func FinalNames(decisions []v1alpha1.Decision) []string {
	var out []string
	for i := range decisions {
		if IsFinal(&decisions[i]) {
			out = append(out, decisions[i].Name)
		}
	}
	return out
}

// BecameFinal passes on events of Decisions that were applied or refused.
var BecameFinal = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, isDecision := e.ObjectOld.(*v1alpha1.Decision)
		is, alsoDecision := e.ObjectNew.(*v1alpha1.Decision)
		return isDecision && alsoDecision && !IsFinal(was) && IsFinal(is)
	},
	DeleteFunc:  func(event.DeleteEvent) bool { return false },
	GenericFunc: func(event.GenericEvent) bool { return false },
}

// BecameProtected passes on events of Decisions whose Run became their owner: from then on they can be acted on.
var BecameProtected = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		was, isDecision := e.ObjectOld.(*v1alpha1.Decision)
		is, alsoDecision := e.ObjectNew.(*v1alpha1.Decision)
		return isDecision && alsoDecision && OwnerUID(was) != OwnerUID(is)
	},
	DeleteFunc:  func(event.DeleteEvent) bool { return false },
	GenericFunc: func(event.GenericEvent) bool { return false },
}

// NextStep describes which Decision to create after a refused one. All names in taken are used. It is empty if no open
// request fits the refused Decision.
func NextStep(run *v1alpha1.Run, d *v1alpha1.Decision, taken []string) string {
	if run == nil || !run.DeletionTimestamp.IsZero() || run.Status.CompletionTime != nil || d.Spec.Type == v1alpha1.DecisionMessage {
		return ""
	}
	if isForEarlier(run, d) {
		return ""
	}
	request := intendedRequest(run, d)
	if request == "" {
		return ""
	}
	return fmt.Sprintf(". Create Decision %s", FreeName(run.Name, request, append(slices.Clone(taken), d.Name)))
}

// intendedRequest returns the id of the open request that a Decision names or, if there is only
// one, of that; empty otherwise.
func intendedRequest(run *v1alpha1.Run, d *v1alpha1.Decision) string {
	if run.Status.Progress == nil {
		return ""
	}
	open := forUsers(run.Status.Progress.Pending)
	for _, p := range open {
		if p.ID == d.Spec.Request {
			return p.ID
		}
	}
	if len(open) == 1 {
		return open[0].ID
	}
	return ""
}
