package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/meter"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/internal/state"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// defaultWait bounds one wait for a person where the task says nothing else.
const defaultWait = 7 * 24 * time.Hour

// A room is where people are asked, and the operator for child Runs.
type room struct {
	mu   sync.Mutex
	open []*request // oldest first
}

// A request is something that a person, or the operator, is asked, and what came
// of it.
type request struct {
	task.Pending
	session *session     // whose book tells of it
	limit   *meter.Limit // that is used up
	errand  errand
	since   time.Time
	waiters int
	shown   bool          // a report has shown it
	done    chan struct{} // closed once it is decided
	said    journal.Decision
	expired bool // no Decision was made in time
	// Of the approval of a call: what wants it, its arguments in whole, and whether
	// it is good for this call alone.
	source journal.Source
	args   string
	once   bool
	// misfit says what is wrong with an answer; nil: any will do.
	misfit func(string) error
}

// Ask implements [tool.Session].
func (j *job) Ask(ctx context.Context, q tool.Question) (tool.Answer, error) {
	if err := j.enter(ctx); err != nil {
		return tool.Answer{}, err
	}
	defer j.leave()
	s := j.session
	id, since := s.questionOf(j.call.ID)
	if said, answered := s.decision(id); answered {
		return tool.Answer{Text: said.Value, By: said.By}, nil
	}
	asked := &request{
		session: s, errand: forAnswer, since: since, misfit: q.Fits,
		Pending: task.Pending{
			ID: id, Kind: task.PendingQuestion, Agent: task.Cut(s.scope.Agent, task.MaxAsker),
			Question: task.Cut(redact.Printable(s.Redact.String(q.Text)), task.MaxMessage),
			Schema:   s.form(q.Schema),
		},
	}
	d, answered, err := s.await(ctx, asked)
	if err != nil {
		return tool.Answer{}, err
	}
	return tool.Answer{Text: d.Value, By: d.By, Expired: !answered}, nil
}

// form is how to answer, as people are shown it: whole, or not at all.
func (s *session) form(schema json.RawMessage) string {
	if len(schema) == 0 {
		return ""
	}
	form := legible(s.Redact.JSON(schema))
	if len(form) > task.MaxSchema {
		return ""
	}
	return form
}

// questionOf is what the question of a call is known by, and since when it is
// asked: before it the call itself may have been approved.
func (s *session) questionOf(call string) (id string, since time.Time) {
	s.state.ViewSession(s.name, func(now *state.Session) {
		id, since = freeID(call, "", now.Requests[call], nil), now.Since[call] // what it is answered is its own
	})
	return id, since
}

// await asks a person and waits for what they decide; false when nobody did in
// time, or nobody can. Of a request for a child Run it only waits for its end.
func (s *session) await(ctx context.Context, q *request) (journal.Decision, bool, error) {
	if !s.CanAsk && q.Kind != task.PendingDelegation {
		return journal.Decision{}, false, nil
	}
	q, expires := s.post(q)
	defer s.drop(q)
	w := wait{errand: q.errand, done: q.done, until: func(now signals.Signals) (bool, error) { return false, s.listenTo(now) }}
	if !expires.IsZero() {
		late := time.NewTimer(expires.Sub(s.Now()))
		defer late.Stop()
		w.late, w.expire = late.C, func() { s.expire(q) }
	}
	if err := s.wait(ctx, w); err != nil {
		return journal.Decision{}, false, err
	}
	s.room.mu.Lock()
	defer s.room.mu.Unlock()
	return q.said, !q.expired, nil
}

// showState has the operator know at once what the Run waits for, where that is
// another than it was told last.
func (r *run) showState() {
	if r.waitState() != r.board.state() {
		r.tellNow()
	}
}

// post shows a request, or finds it where another branch already asks the same.
func (r *run) post(q *request) (*request, time.Time) {
	r.room.mu.Lock()
	defer r.room.mu.Unlock()
	if q.since.IsZero() {
		q.since = r.Now()
	}
	if other := r.room.find(q.ID); other != nil {
		other.waiters++
		return other, r.expiry(other)
	}
	q.waiters, q.done = 1, make(chan struct{})
	expires := r.expiry(q)
	q.AskedAt = q.since.UTC().Format(time.RFC3339)
	if !expires.IsZero() {
		q.ExpiresAt = expires.UTC().Format(time.RFC3339)
	}
	r.room.open = append(r.room.open, q)
	slices.SortStableFunc(r.room.open, func(a, b *request) int {
		callA, callB := callOf(a.ID), callOf(b.ID)
		return cmp.Or(a.since.Compare(b.since), cmp.Compare(len(callA), len(callB)), cmp.Compare(callA, callB),
			cmp.Compare(len(a.ID), len(b.ID)), cmp.Compare(a.ID, b.ID))
	})
	q.announce()
	return q, expires
}

// expiry is until when a request waits; zero: for as long as it takes, as one for
// a child Run does.
func (r *run) expiry(q *request) time.Time {
	if q.Kind == task.PendingDelegation {
		return time.Time{}
	}
	wait := time.Duration(r.Task.Limits.WaitSeconds) * time.Second
	if wait <= 0 {
		wait = defaultWait
	}
	return q.since.Add(wait)
}

// announce tells of a request as events do: whole.
func (q *request) announce() {
	if q.Kind == task.PendingDelegation {
		q.session.emit("A child Run of Agent "+q.Agent+" is asked for: "+task.Cut(redact.Printable(q.Args), task.MaxSummary),
			events.ChildStarted{Session: q.ID, Agent: q.Agent, Args: json.RawMessage(q.Args)})
		return
	}
	p := events.Pending(q.Pending)
	if q.Kind == task.PendingApproval {
		p.Args, p.ArgsTruncated = q.args, false
	}
	q.session.emit("Waiting for a Decision: "+task.Cut(q.Question, task.MaxSummary), p)
}

// drop takes away a request that nobody waits for any more. When the runner
// leaves, people are still asked.
func (r *run) drop(q *request) {
	r.room.mu.Lock()
	defer r.room.mu.Unlock()
	if q.waiters--; q.waiters == 0 && r.left.Load() == nil {
		r.room.close(q)
	}
}

func (m *room) close(q *request) {
	m.open = slices.DeleteFunc(m.open, func(other *request) bool { return other == q })
}

// expire gives a request up, unless it was decided at the last moment.
func (r *run) expire(q *request) {
	r.room.mu.Lock()
	defer r.room.mu.Unlock()
	select {
	case <-q.done:
		return
	default:
	}
	if q.expired {
		return
	}
	q.expired = true
	r.room.close(q)
	q.session.emit("No Decision was made in time", events.Decided{Request: q.ID, Refused: refusedLate})
}

// listen tells the model what people said to it, each with the decision that it
// came in: one record, so that it is said once, whatever happens.
func (s *session) listen(messages []task.Decision) error {
	for _, d := range messages {
		st := s.said(task.Cut(d.Value, maxResult), step.NoteMessage)
		said := journal.Decision{Name: d.Name, By: s.field(d.By), Type: d.Type}
		if err := s.recordStep(st, &said); err != nil {
			return err
		}
		s.showDecided(s, said)
	}
	return nil
}

// showDecided tells what became of a decision.
func (r *run) showDecided(s *session, d journal.Decision) {
	message := fmt.Sprintf("%s by %s: %s", d.Type, d.By, d.Name)
	if d.Refused != "" {
		message = "Refused: " + d.Name + ": " + d.Refused
	}
	s.emit(message, events.Decided{Name: d.Name, Request: d.Request, Refused: d.Refused, Type: d.Type, By: d.By})
	r.tellNow()
}

// maxType bounds the type of a decision, which may be one that nobody knows.
const maxType = 16

func decidedOf(d journal.Decision) task.Decided {
	return task.Decided{Name: d.Name, Request: d.Request, Type: task.Cut(d.Type, maxType), Digest: d.Digest, Refused: d.Refused}
}
