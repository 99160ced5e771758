package state

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/compaction"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// A Session is the state of a session when its journal stopped.
type Session struct {
	// Steps are the steps that the model sees. If the last step is an answer with calls, some of those calls have no
	// result yet.
	Steps []step.Step
	// Last is the number of the last step, hidden ones counted.
	Last int64
	// Turns is how many answers of the model were recorded, hidden ones counted.
	Turns int64
	// CompactedAt is the number of the last step at the last compaction. Prompt caches from before it are of no use. 0:
	// there was none.
	CompactedAt int64
	// Route is the Model that was last chosen, and RoutedTurn the turn for which it was chosen; empty: the agent's own
	// Model.
	Route      string
	RoutedTurn int64
	// Results are the results that calls of the last answer already have, by call.
	Results map[string]step.Step
	// Intents are the begun tool calls of the last turn, by call. Since is when each was first begun.
	Intents map[string]journal.Intent
	Since   map[string]time.Time
	// Requests are the requests about calls of the last turn, by call, oldest first: requests to users, and requests
	// for child Runs.
	Requests map[string][]Asked
	// Answers are the Decisions on requests of the last turn, by request.
	Answers map[string]journal.Decision
	// Children are the results of child Runs that calls of the last turn requested, by request.
	Children map[string]journal.Child
	// Asked is a model call without an answer, and AskedAt when it was sent.
	Asked   *journal.Intent
	AskedAt time.Time
	// Ending is what the call that ended the session committed.
	Ending *journal.Ending
	// Ended is the reason with which the session ended; empty if anything was recorded after it.
	Ended string
	// Notices are the runner's messages to the model for its next turn, oldest first.
	Notices []string
	// Nudged reports that the model has a notice that it repeats itself, and that no user has sent a message since.
	Nudged bool
	// Outage is the outage of the model that the session waits for.
	Outage Outage
	// Used is the usage of the session and of those below it. The Run has the usage of its own session.
	Used step.Meter
	// TakenOver is the number of the last step of the Run that is continued; 0: the session continues none.
	TakenOver int64
	// Before is the session of another Run that the session continues, until it has a message of this Run; nil: it
	// continues none, or has one.
	Before *Before
}

// Open returns the calls of the last turn that have no result yet, in their order.
func (s *Session) Open() []step.Call {
	if len(s.Steps) == 0 {
		return nil
	}
	var open []step.Call
	for _, c := range s.Steps[len(s.Steps)-1].Calls {
		if _, done := s.Results[c.ID]; !done {
			open = append(open, c)
		}
	}
	return open
}

func (s *Session) applyIntent(r journal.Record) {
	i := r.Intent
	if i.CallID == "" {
		s.Asked, s.AskedAt = i, r.At
		return
	}
	if s.Intents == nil {
		s.Intents, s.Since = map[string]journal.Intent{}, map[string]time.Time{}
	}
	s.Intents[i.CallID] = *i
	s.markSpent(i.CallID)
	if _, known := s.Since[i.CallID]; !known {
		s.Since[i.CallID] = r.At
	}
}

// Canonical returns the canonical arguments with which a call of the last turn was decided about or begun, if the tool
// computed them from the arguments with this digest.
func (s *Session) Canonical(call, written string) (json.RawMessage, bool) {
	for _, q := range slices.Backward(s.Requests[call]) {
		if q.Written == written {
			return q.Args, true
		}
	}
	i, begun := s.Intents[call]
	return i.Args, begun && i.Written == written
}

// maxNotices is how many notices are kept: the newest ones.
const maxNotices = 8

func (s *Session) addNotice(text string) {
	s.Notices = append(slices.Clip(s.Notices), text)
	s.Notices = s.Notices[max(len(s.Notices)-maxNotices, 0):]
}

func (s *Session) addAnswer(d journal.Decision) {
	if s.Answers == nil {
		s.Answers = map[string]journal.Decision{}
	}
	s.Answers[d.Request] = d
}

func (s *Session) addResult(r journal.Record) {
	if _, known := s.Results[r.Step.CallID]; known {
		return // the first counts
	}
	if s.Results == nil {
		s.Results = map[string]step.Step{}
	}
	s.Results[r.Step.CallID] = *r.Step
	if r.Ending != nil && s.Ending == nil {
		s.Ending = r.Ending
	}
	s.closeTurn()
}

// closeTurn moves the results into the session once each call has one.
func (s *Session) closeTurn() {
	if len(s.Steps) == 0 || len(s.Results) < len(s.Steps[len(s.Steps)-1].Calls) {
		return
	}
	from := len(s.Steps)
	for _, t := range s.Results {
		s.Steps = append(s.Steps, t)
	}
	slices.SortFunc(s.Steps[from:], func(a, b step.Step) int { return cmp.Compare(a.Seq, b.Seq) })
	s.Last = s.Steps[len(s.Steps)-1].Seq
	clear(s.Results)
	clear(s.Intents)
	clear(s.Since)
	clear(s.Requests)
	clear(s.Answers)
	clear(s.Children)
}

func (s *Session) addStep(r journal.Record) error {
	if r.Step == nil || r.Step.Seq != s.Last+1 || len(s.Results) > 0 {
		return fmt.Errorf("replaying the journal: record %d does not follow step %d", r.Seq, s.Last)
	}
	s.Steps = append(s.Steps, *r.Step)
	s.Last = r.Step.Seq
	s.Ended = ""
	if s.Before != nil && r.Step.Role == step.RoleUser {
		s.Before, s.Ending = nil, nil // a call of the Run before may have ended the session since
	}
	switch {
	case r.Step.Role == step.RoleAssistant:
		s.Asked, s.Outage = nil, Outage{}
		s.Turns++
	case r.Step.Note == step.NoteRunner:
		s.Notices = nil
	case r.Step.Note == step.NoteStuck:
		s.Nudged = true
	case r.Step.Note == "", r.Step.Note == step.NoteMessage:
		s.Nudged = false
	}
	return nil
}

// applyHide hides steps from the model.
func (s *Session) applyHide(r journal.Record) error {
	if r.Hide == nil || len(s.Open()) > 0 {
		return fmt.Errorf("replaying the journal: record %d hides nothing, or what is still open", r.Seq)
	}
	s.Steps = compaction.Apply(s.Steps, compaction.Cut{Through: r.Hide.Through, Clear: r.Hide.Summary == ""}, r.Hide.Summary)
	s.Asked, s.CompactedAt = nil, s.Last
	if r.Hide.Summary != "" {
		s.Outage = Outage{} // the model wrote the summary
	}
	return nil
}
