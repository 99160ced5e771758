package state

import (
	"slices"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// The name of an approval for the rest of the Run in a Decision.
const (
	typeApprove = "Approve"
	scopeRun    = "Run"
)

// Asked is a Request about a call, with its state.
type Asked struct {
	journal.Request
	// Since is when the request was made first.
	Since time.Time
	// Spent reports that the call was begun after the Decision, which is used up.
	Spent bool
}

// Released reports whether a user approved, for the rest of the Run, every call that a source asks about.
func (r *Run) Released(s journal.Source) bool { return r.released[s] }

// LimitRequestedAt returns since when users have been asked to raise a limit; zero: they are not.
func (r *Run) LimitRequestedAt(request string) time.Time { return r.limitRequests[request] }

// HasOpenCall reports whether a call has no result yet, in any session.
func (r *Run) HasOpenCall(call string) bool {
	s, ok := r.sessions[parent(call)]
	if !ok {
		return false
	}
	for _, c := range s.Open() {
		if c.ID == call {
			return true
		}
	}
	return false
}

// CallOf returns the id of the call that a request is about, if the call is in the last turn of a session; empty: it is
// not.
func (r *Run) CallOf(request string) string {
	for _, s := range r.sessions {
		for call, asked := range s.Requests {
			if slices.ContainsFunc(asked, func(q Asked) bool { return q.ID == request }) {
				return call
			}
		}
	}
	return ""
}

// applyRequest keeps a request and its time.
func (r *Run) applyRequest(rec journal.Record) {
	r.Delegates = r.Delegates || rec.Request != nil && rec.Request.Delegation != nil
	switch {
	case rec.Request == nil:
	case rec.Request.CallID != "":
		r.Session(rec.Session).addRequest(rec)
	case r.limitRequests == nil:
		r.limitRequests = map[string]time.Time{rec.Request.ID: rec.At}
	default:
		r.limitRequests[rec.Request.ID] = rec.At
	}
}

// applyAnswer keeps the Decision on a request.
func (r *Run) applyAnswer(session string, d journal.Decision) {
	delete(r.limitRequests, d.Request)
	r.Session(session).addAnswer(d)
	if d.Type != typeApprove || d.Scope != scopeRun {
		return
	}
	if r.released == nil {
		r.released = map[journal.Source]bool{}
	}
	r.released[d.Source] = true
}

// addRequest keeps a request about a call.
func (s *Session) addRequest(r journal.Record) {
	if s.Requests == nil {
		s.Requests = map[string][]Asked{}
	}
	s.Requests[r.Request.CallID] = append(s.Requests[r.Request.CallID], Asked{Request: *r.Request, Since: r.At})
}

// markSpent marks the Decisions on a call as used.
func (s *Session) markSpent(call string) {
	for i := range s.Requests[call] {
		s.Requests[call][i].Spent = true
	}
}

// Delegated returns the request for a child Run that a call has made, if it has.
func (s *Session) Delegated(call string) (Asked, bool) {
	for _, q := range s.Requests[call] {
		if q.Delegation != nil {
			return q, true
		}
	}
	return Asked{}, false
}

// applyChild keeps the result of a child Run. The first result counts.
func (r *Run) applyChild(rec journal.Record) {
	if rec.Child == nil {
		return
	}
	s := r.Session(rec.Session)
	if _, known := s.Children[rec.Child.Request]; known {
		return
	}
	if s.Children == nil {
		s.Children = map[string]journal.Child{}
	}
	s.Children[rec.Child.Request] = *rec.Child
	r.childRuns = r.childRuns.PlusChildRun(rec.Child.Usage)
	r.Meter = r.Meter.Max(r.childRuns)
}

// maxUnclear bounds how many pairs of Model and finish reason are counted.
const maxUnclear = 16

// UnclearAnswers counts the answers of a Model that were used although their finish reason does not show that they are
// complete.
type UnclearAnswers struct {
	Model, Reason string
	Count         int64
}

// UnclearAnswers returns the counts, in the order in which the finish reasons first appeared.
func (r *Run) UnclearAnswers() []UnclearAnswers { return slices.Clone(r.unclear) }

// countUnclear counts the finish reason of a step, if it is unclear.
func (r *Run) countUnclear(s *step.Step) {
	if s == nil || s.UnclearReason == "" {
		return
	}
	i := slices.IndexFunc(r.unclear, func(u UnclearAnswers) bool { return u.Model == s.Model && u.Reason == s.UnclearReason })
	switch {
	case i >= 0:
		r.unclear[i].Count++
	case len(r.unclear) < maxUnclear:
		r.unclear = append(r.unclear, UnclearAnswers{Model: s.Model, Reason: s.UnclearReason, Count: 1})
	}
}
