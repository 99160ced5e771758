package approval

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/deckhand-dev/deckhand/internal/shared/digest"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/state"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// MaxRefused bounds the cause of a refused Decision, in bytes, as the status does.
const MaxRefused = 128

// maxValue bounds an answer, in bytes.
const maxValue = 256 << 10

// Why the runner does not act on a decision.
const (
	RefusedLate      = "no Decision was made in time"
	RefusedUnknown   = "nothing waits for %q any more; see status.progress.pending"
	RefusedNone      = "nothing is asked"
	RefusedAmbiguous = "several things are asked; name one of them as its request"
	RefusedKind      = "%s is a %s, not for type %s"
	RefusedCall      = "%s wants Approve or Deny"
	RefusedDigest    = "it approves another call: its digest is not the digest of the request"
	RefusedInvalid   = "the answer does not fit: %s"
	RefusedNoGrant   = "it grants no %s"
	RefusedType      = "this runner knows no decision of the type %q"
)

// ApplyDecisions acts on new Decisions, and returns the messages among them to the agent. Every wait calls it, and the
// Run's own session before each turn.
func (r *Requests) ApplyDecisions(by Session, said []task.Decision) ([]task.Decision, error) {
	if len(said) == 0 || !r.config.CanAsk {
		return nil, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.suspended.Load() != nil {
		return nil, nil // the next attempt hears it
	}
	// What names a request goes before what only may be an answer.
	said = slices.Clone(said)
	slices.SortStableFunc(said, func(a, b task.Decision) int { return cmp.Compare(priority(a), priority(b)) })
	var messages []task.Decision
	for _, d := range said {
		if r.isActedOn(d.Name) {
			continue
		}
		q, refused := r.match(d)
		var err error
		switch {
		case q != nil:
			err = r.decide(q, d)
		case refused != "":
			err = r.refuse(by, d, refused)
		case d.Type == task.DecisionMessage && !slices.ContainsFunc(messages, func(m task.Decision) bool { return m.Name == d.Name }):
			messages = append(messages, d)
		}
		if err != nil {
			return nil, err
		}
	}
	return messages, nil
}

// priority orders decisions that arrive together: messages come last.
func priority(d task.Decision) int {
	if d.Type == task.DecisionMessage {
		return 1
	}
	return 0
}

func (r *Requests) isActedOn(decision string) (acted bool) {
	r.config.State.View(func(now *state.Run) { acted = now.Acted(decision) })
	return acted
}

// match returns the request that a Decision answers, or the reason why it answers none. If it returns neither, a
// message is for the agent, and any other Decision is left until its request is made.
func (r *Requests) match(d task.Decision) (*Request, string) {
	switch d.Type {
	case task.DecisionMessage:
		return r.questionFor(d)
	case task.DecisionAnswer, task.DecisionGrant, task.DecisionApprove, task.DecisionDeny:
	default:
		return nil, fmt.Sprintf(RefusedType, d.Type)
	}
	if d.Request == "" {
		q, refused := r.open.findUnnamed(d)
		if q == nil {
			return nil, refused
		}
		return q.check(d)
	}
	if q := r.open.find(d.Request); q != nil {
		return q.check(d)
	}
	if r.mayBeAsked(d.Request) {
		return nil, "" // it is about to be asked
	}
	return nil, fmt.Sprintf(RefusedUnknown, d.Request)
}

// questionFor returns the question that a message answers: the only open question, if the whole Run waits and the
// message is a valid answer. Any other message is for the agent. A message approves nothing.
func (r *Requests) questionFor(d task.Decision) (*Request, string) {
	if q := r.open.find(d.Request); q != nil && q.Kind == task.PendingApproval {
		return q.check(d)
	}
	if !r.activity.isIdle() {
		return nil, ""
	}
	q, _ := r.open.onlyOfKind(task.PendingQuestion)
	if q != nil && q.checkAnswer(d.Value) != nil {
		return nil, "" // said to the agent, it may help all the same
	}
	return q, ""
}

// mayBeAsked reports whether a request can still be made: its call has no result, or its limit is reached.
func (r *Requests) mayBeAsked(request string) (due bool) {
	if l := r.config.Reached(); l != nil && l.Extensible() && l.Request() == request {
		return true
	}
	r.config.State.View(func(now *state.Run) { due = now.HasOpenCall(cmp.Or(now.CallOf(request), CallOf(request))) })
	return due
}

// kindOf returns the kind of request that a Decision answers.
func kindOf(d task.Decision) string {
	switch d.Type {
	case task.DecisionGrant:
		return task.PendingLimit
	case task.DecisionApprove, task.DecisionDeny:
		return task.PendingApproval
	}
	return task.PendingQuestion
}

// openRequests are the requests that a session or a call waits for, oldest first.
type openRequests struct{ all []*Request }

func (o *openRequests) close(q *Request) {
	o.all = slices.DeleteFunc(o.all, func(other *Request) bool { return other == q })
}

// find returns the open request with an id, or nil.
func (o *openRequests) find(id string) *Request {
	for _, q := range o.all {
		if q.ID == id {
			return q
		}
	}
	return nil
}

// findUnnamed returns the request that a Decision without a request answers: the request for approval of the call with
// its digest, or the only request of its kind.
func (o *openRequests) findUnnamed(d task.Decision) (*Request, string) {
	for _, q := range o.all {
		if q.Kind == task.PendingApproval && kindOf(d) == q.Kind && q.Digest == d.Digest {
			return q, ""
		}
	}
	return o.onlyOfKind(kindOf(d))
}

// onlyOfKind returns the request of a kind if there is exactly one.
func (o *openRequests) onlyOfKind(kind string) (*Request, string) {
	var found *Request
	for _, q := range o.all {
		switch {
		case q.Kind != kind:
		case found != nil:
			return nil, RefusedAmbiguous
		default:
			found = q
		}
	}
	if found == nil {
		return nil, RefusedNone
	}
	return found, ""
}

// check returns the request if the Decision fits it, and otherwise the reason why it does not.
func (r *Request) check(d task.Decision) (*Request, string) {
	switch {
	case kindOf(d) != r.Kind && r.Kind == task.PendingApproval, d.Type == task.DecisionMessage:
		return nil, fmt.Sprintf(RefusedCall, r.ID)
	case kindOf(d) != r.Kind:
		return nil, fmt.Sprintf(RefusedKind, r.ID, r.Kind, d.Type)
	case r.Kind == task.PendingApproval && !r.isNamedBy(d):
		return nil, RefusedDigest
	case r.Limit != nil && r.Limit.Granted(d) <= 0:
		return nil, fmt.Sprintf(RefusedNoGrant, r.Limit.Name)
	}
	if err := r.checkAnswer(d.Value); r.Kind == task.PendingQuestion && err != nil {
		return nil, fmt.Sprintf(RefusedInvalid, err)
	}
	return r, ""
}

// isNamedBy reports whether a Decision is about the call as it would be made now. An approval shows that with the
// digest, or with an id that ends in the digest.
func (r *Request) isNamedBy(d task.Decision) bool {
	if d.Digest != "" {
		return d.Digest == r.Digest
	}
	return d.Type == task.DecisionDeny || d.Request == r.ID && digest.IsBound(r.ID, r.Digest)
}

// checkAnswer returns what is wrong with an answer, or nil.
func (r *Request) checkAnswer(answer string) error {
	switch {
	case r.Check == nil:
		return nil
	case len(answer) > maxValue:
		return fmt.Errorf("it has %d bytes; at most %d are read", len(answer), maxValue)
	}
	return r.Check(answer)
}

// decide records a Decision and then acts on it. Texts are redacted before they are cut: a part of a secret would not
// be recognized.
func (r *Requests) decide(q *Request, d task.Decision) error {
	said := journal.Decision{Name: d.Name, By: r.boundField(d.By), Request: q.ID, Type: d.Type}
	switch {
	case q.Limit != nil:
		said.Steps, said.Tokens, said.CostMicroUSD = max(d.Steps, 0), max(d.Tokens, 0), max(d.CostMicroUSD, 0)
	case q.Kind == task.PendingApproval:
		said.Digest, said.Source, said.Reason = q.Digest, q.Source, task.Cut(r.config.Redact.String(d.Reason), task.MaxMessage)
		if !q.Once {
			said.Scope = r.boundField(d.Scope)
		}
	case q.Check != nil:
		said.Value = string(r.config.Redact.JSON([]byte(d.Value)))
	default:
		said.Value = task.Cut(r.config.Redact.String(d.Value), maxValue)
	}
	if q.Kind == task.PendingQuestion {
		for _, path := range d.Images {
			said.Images = append(said.Images, r.boundField(path))
		}
	}
	if err := q.Session.Record(journal.Record{Kind: journal.KindDecide, Decision: &said}); err != nil {
		return fmt.Errorf("recording the decision %s: %w", d.Name, err)
	}
	if q.Limit != nil {
		r.config.Grant(said)
	}
	q.decision = said
	r.activity.noteDecision()
	r.open.close(q)
	close(q.done)
	if said.Type == task.DecisionApprove && said.Scope == task.ScopeRun {
		r.open.closeApproved(q.Source)
	}
	r.ReportDecision(q.Session, said)
	return nil
}

// closeApproved closes all requests of one rule: what it asks about was approved for the
// rest of the Run. The calls that wait for them ask the policy again.
func (o *openRequests) closeApproved(from journal.Source) {
	for _, q := range slices.Clone(o.all) {
		if q.Kind == task.PendingApproval && q.Source == from && !q.Once {
			o.close(q)
			close(q.done)
		}
	}
}

// MaxField bounds a field of a decision: what the API lets through.
const MaxField = 512

// boundField returns a field of a Decision as it is recorded: without secrets, and bounded.
func (r *Requests) boundField(text string) string {
	return task.Cut(r.config.Redact.String(text), MaxField)
}

// refuse records that the runner does not act on a Decision. The cause may quote the Decision.
func (r *Requests) refuse(by Session, d task.Decision, why string) error {
	said := journal.Decision{Name: d.Name, By: r.boundField(d.By), Request: r.boundField(d.Request), Type: r.boundField(d.Type), Refused: task.Cut(r.config.Redact.String(why), MaxRefused)}
	if err := by.Record(journal.Record{Kind: journal.KindDecide, Decision: &said}); err != nil {
		return fmt.Errorf("recording the decision %s: %w", d.Name, err)
	}
	r.ReportDecision(by, said)
	return nil
}
