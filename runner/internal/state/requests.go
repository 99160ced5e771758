package state

import (
	"slices"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/journal"
)

// What an approval for the rest of the Run is called in a Decision.
const (
	typeApprove = "Approve"
	scopeRun    = "Run"
)

// Asked is a Request about a call, and what became of it.
type Asked struct {
	journal.Request
	// Since is when it was asked first.
	Since time.Time
	// Spent says that the call was begun since: what was decided is used up.
	Spent bool
}

// Released says whether a person approved, for the rest of the Run, all that s
// wants them to be asked about.
func (b *Run) Released(s journal.Source) bool { return b.released[s] }

// Asked is since when a person is asked for more of a limit; zero: they are not.
func (b *Run) Asked(request string) time.Time { return b.asked[request] }

// Waits says whether the call of that id has no result yet, in any session.
func (b *Run) Waits(call string) bool {
	s, ok := b.sessions[parent(call)]
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

// CallOf returns the id of the call of the last turn of a session about which a
// person was asked with a request; empty: there is none.
func (b *Run) CallOf(request string) string {
	for _, s := range b.sessions {
		for call, asked := range s.Requests {
			if slices.ContainsFunc(asked, func(q Asked) bool { return q.ID == request }) {
				return call
			}
		}
	}
	return ""
}

// ask keeps what a person is asked, and since when.
func (b *Run) ask(r journal.Record) {
	switch {
	case r.Request == nil:
	case r.Request.CallID != "":
		b.Session(r.Session).request(r)
	case b.asked == nil:
		b.asked = map[string]time.Time{r.Request.ID: r.At}
	default:
		b.asked[r.Request.ID] = r.At
	}
}

// answered keeps what a person decided on a request.
func (b *Run) answered(session string, d journal.Decision) {
	delete(b.asked, d.Request)
	b.Session(session).answer(d)
	if d.Type != typeApprove || d.Scope != scopeRun {
		return
	}
	if b.released == nil {
		b.released = map[journal.Source]bool{}
	}
	b.released[d.Source] = true
}

// request keeps what a person is asked about a call.
func (s *Session) request(r journal.Record) {
	if s.Requests == nil {
		s.Requests = map[string][]Asked{}
	}
	s.Requests[r.Request.CallID] = append(s.Requests[r.Request.CallID], Asked{Request: *r.Request, Since: r.At})
}

// spend uses up what was decided on a call.
func (s *Session) spend(call string) {
	for i := range s.Requests[call] {
		s.Requests[call][i].Spent = true
	}
}

// Delegated is the child Run that a call has asked for, if it has.
func (s *Session) Delegated(call string) (Asked, bool) {
	for _, q := range s.Requests[call] {
		if q.Delegation != nil {
			return q, true
		}
	}
	return Asked{}, false
}

// child keeps how a child Run ended. The first that is said of one counts.
func (s *Session) child(c journal.Child) {
	if _, known := s.Children[c.Request]; known {
		return
	}
	if s.Children == nil {
		s.Children = map[string]journal.Child{}
	}
	s.Children[c.Request] = c
}
