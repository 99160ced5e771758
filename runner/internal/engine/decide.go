package engine

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/deckhand-dev/deckhand/internal/digest"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/state"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// maxRefused bounds why, in bytes, as the status does.
const maxRefused = 128

// Why the runner does not act on a decision.
const (
	refusedLate    = "no Decision was made in time"
	refusedUnknown = "nothing waits for %q any more; see status.progress.pending"
	refusedNone    = "nothing is asked"
	refusedMany    = "several things are asked; name one of them as its request"
	refusedKind    = "%s is a %s, not for type %s"
	refusedCall    = "%s wants Approve or Deny"
	refusedDigest  = "it approves another call: its digest is not the digest of the request"
	refusedMisfit  = "the answer does not fit: %s"
	refusedLittle  = "it grants no %s"
	refusedType    = "this runner knows no decision of the type %q"
)

// hear acts on those decisions that it has not acted on yet, and returns what
// they said to the agent. It is called wherever somebody waits, and by the
// Run's own session before each turn.
func (r *run) hear(by *session, said []task.Decision) ([]task.Decision, error) {
	if len(said) == 0 || !r.CanAsk {
		return nil, nil
	}
	r.room.mu.Lock()
	defer r.room.mu.Unlock()
	if r.left.Load() != nil {
		return nil, nil // the next attempt hears it
	}
	// What names a request goes before what only may be an answer.
	said = slices.Clone(said)
	slices.SortStableFunc(said, func(a, b task.Decision) int { return cmp.Compare(urgency(a), urgency(b)) })
	var messages []task.Decision
	for _, d := range said {
		if r.acted(d.Name) {
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

// urgency orders decisions that are heard at once: messages come last.
func urgency(d task.Decision) int {
	if d.Type == task.DecisionMessage {
		return 1
	}
	return 0
}

func (r *run) acted(decision string) (acted bool) {
	r.state.View(func(now *state.Run) { acted = now.Acted(decision) })
	return acted
}

// match is the request that a decision answers, or why it answers none. With
// neither it is left for later.
func (r *run) match(d task.Decision) (*request, string) {
	switch d.Type {
	case task.DecisionMessage:
		return r.addressee(d)
	case task.DecisionAnswer, task.DecisionGrant, task.DecisionApprove, task.DecisionDeny:
	default:
		return nil, fmt.Sprintf(refusedType, d.Type)
	}
	if d.Request == "" {
		q, refused := r.room.meant(d)
		if q == nil {
			return nil, refused
		}
		return q.fits(d)
	}
	if q := r.room.find(d.Request); q != nil {
		return q.fits(d)
	}
	if r.due(d.Request) {
		return nil, "" // it is about to be asked
	}
	return nil, fmt.Sprintf(refusedUnknown, d.Request)
}

// addressee is the question that a message answers: that of a Run that only
// waits, unless there are several. Nobody approves anything with a message.
func (r *run) addressee(d task.Decision) (*request, string) {
	if q := r.room.find(d.Request); q != nil && q.Kind == task.PendingApproval {
		return q.fits(d)
	}
	if !r.crew.idle() {
		return nil, ""
	}
	q, _ := r.room.only(task.PendingQuestion)
	if q != nil && q.wrong(d.Value) != nil {
		return nil, "" // said to the agent, it may help all the same
	}
	return q, ""
}

// due says whether a request may yet come: of a call that is not answered, or
// of a limit that is reached.
func (r *run) due(request string) (due bool) {
	if g := r.meter.Reached(); g != nil && g.Extensible() && g.Request() == request {
		return true
	}
	r.state.View(func(now *state.Run) { due = now.Waits(cmp.Or(now.CallOf(request), callOf(request))) })
	return due
}

// kindOf is what a decision is an answer to.
func kindOf(d task.Decision) string {
	switch d.Type {
	case task.DecisionGrant:
		return task.PendingLimit
	case task.DecisionApprove, task.DecisionDeny:
		return task.PendingApproval
	}
	return task.PendingQuestion
}

// find is the request of an id; nil: it is not open.
func (m *room) find(id string) *request {
	for _, q := range m.open {
		if q.ID == id {
			return q
		}
	}
	return nil
}

// meant is what a decision is about that names no request: the call of its
// digest, the one that waits longest, or the only request of its kind.
func (m *room) meant(d task.Decision) (*request, string) {
	for _, q := range m.open {
		if q.Kind == task.PendingApproval && kindOf(d) == q.Kind && q.Digest == d.Digest {
			return q, ""
		}
	}
	return m.only(kindOf(d))
}

// only is the one request of a kind.
func (m *room) only(kind string) (*request, string) {
	var found *request
	for _, q := range m.open {
		switch {
		case q.Kind != kind:
		case found != nil:
			return nil, refusedMany
		default:
			found = q
		}
	}
	if found == nil {
		return nil, refusedNone
	}
	return found, ""
}

// fits is the request, if the decision is one about it.
func (q *request) fits(d task.Decision) (*request, string) {
	switch {
	case kindOf(d) != q.Kind && q.Kind == task.PendingApproval, d.Type == task.DecisionMessage:
		return nil, fmt.Sprintf(refusedCall, q.ID)
	case kindOf(d) != q.Kind:
		return nil, fmt.Sprintf(refusedKind, q.ID, q.Kind, d.Type)
	case q.Kind == task.PendingApproval && !q.isNamedBy(d):
		return nil, refusedDigest
	case q.limit != nil && q.limit.Granted(d) <= 0:
		return nil, fmt.Sprintf(refusedLittle, q.limit.Name)
	}
	if err := q.wrong(d.Value); q.Kind == task.PendingQuestion && err != nil {
		return nil, fmt.Sprintf(refusedMisfit, err)
	}
	return q, ""
}

// isNamedBy reports whether a decision on a call is about the call as it would be
// made. An approval says so by the digest, or by an id that ends in it.
func (q *request) isNamedBy(d task.Decision) bool {
	if d.Digest != "" {
		return d.Digest == q.Digest
	}
	return d.Type == task.DecisionDeny || d.Request == q.ID && digest.IsBound(q.ID, q.Digest)
}

// wrong is what is wrong with an answer; nil: nothing.
func (q *request) wrong(answer string) error {
	switch {
	case q.misfit == nil:
		return nil
	case len(answer) > maxResult:
		return fmt.Errorf("it has %d bytes; at most %d are read", len(answer), maxResult)
	}
	return q.misfit(answer)
}

// decide records a decision and then acts on it.
func (r *run) decide(q *request, d task.Decision) error {
	said := journal.Decision{Name: d.Name, By: r.field(d.By), Request: q.ID, Type: d.Type}
	switch {
	case q.limit != nil:
		said.Steps, said.Tokens, said.CostMicroUSD = max(d.Steps, 0), max(d.Tokens, 0), max(d.CostMicroUSD, 0)
	case q.Kind == task.PendingApproval:
		said.Digest, said.Source, said.Reason = q.Digest, q.source, r.Redact.String(task.Cut(d.Reason, task.MaxMessage))
		if !q.once {
			said.Scope = r.field(d.Scope)
		}
	case q.misfit != nil:
		said.Value = string(r.Redact.JSON([]byte(d.Value)))
	default:
		said.Value = r.Redact.String(task.Cut(d.Value, maxResult))
	}
	if err := q.session.record(journal.Record{Kind: journal.KindDecide, Decision: &said}); err != nil {
		return fmt.Errorf("recording the decision %s: %w", d.Name, err)
	}
	if q.limit != nil {
		r.grant(said)
	}
	q.said = said
	r.crew.hears()
	r.room.close(q)
	close(q.done)
	if said.Type == task.DecisionApprove && said.Scope == task.ScopeRun {
		r.room.release(q.source)
	}
	r.showDecided(q.session, said)
	return nil
}

// release ends all requests that one rule wants: people approved for the rest of
// the Run what it asks about. Who waited for one asks the policy again.
func (m *room) release(from journal.Source) {
	for _, q := range slices.Clone(m.open) {
		if q.Kind == task.PendingApproval && q.source == from && !q.once {
			m.close(q)
			close(q.done)
		}
	}
}

// maxField bounds a field of a decision: what the API lets through.
const maxField = 512

// field is a field of a decision as it is recorded: without secrets, bounded.
func (r *run) field(text string) string { return task.Cut(r.Redact.String(text), maxField) }

// refuse records that nothing comes of a decision.
func (r *run) refuse(by *session, d task.Decision, why string) error {
	said := journal.Decision{Name: d.Name, By: r.field(d.By), Request: r.field(d.Request), Type: r.field(d.Type), Refused: task.Cut(why, maxRefused)}
	if err := by.record(journal.Record{Kind: journal.KindDecide, Decision: &said}); err != nil {
		return fmt.Errorf("recording the decision %s: %w", d.Name, err)
	}
	r.showDecided(by, said)
	return nil
}
