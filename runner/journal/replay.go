package journal

import (
	"cmp"
	"fmt"
	"iter"
	"slices"

	"github.com/deckhand-dev/deckhand/runner/step"
)

// A State is what a session was when its journal stopped.
type State struct {
	// Steps are contiguous from 1. When the last is an assistant's with calls,
	// some of those have no result yet.
	Steps []step.Step
	// Results are those that the last assistant's calls already have, by call.
	Results map[string]step.Step
	// Intents are the tool calls of the last turn that were begun, by call.
	Intents map[string]Intent
	// Asked is a model call that nothing answers.
	Asked *Intent
	// Ending is what a call that ended the Run committed.
	Ending *Ending
	Meter  step.Meter
	// Begun says that a call that may have changed something was begun. Effects
	// are named by the tool package; only its ReadOnly changes nothing.
	Begun bool
	// Ended is the reason for which an attempt ended, when nothing came after.
	Ended string
	// Restarts is how often the running attempt began again in its pod.
	Restarts int
}

// readOnly is the effect class of a call that changes nothing.
const readOnly = "ReadOnly"

// Replay folds a journal into the state of its session.
func Replay(records iter.Seq2[Record, error]) (State, error) {
	var s State
	for r, err := range records {
		if err != nil {
			return State{}, err
		}
		if err := s.Apply(r); err != nil {
			return State{}, err
		}
	}
	return s, nil
}

// Open are the calls of the last turn that have no result yet, in their order.
func (s *State) Open() []step.Call {
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

// Apply adds one record. The loop applies each record that it appended, so
// that a session under way and one read back are the same by construction.
func (s *State) Apply(r Record) error {
	if r.Meter != nil {
		s.Meter = *r.Meter
	}
	switch r.Kind {
	case KindHeader:
		s.Restarts = 0
	case KindMark:
		s.mark(r.Mark)
	case KindIntent:
		s.intend(r.Intent)
	case KindMeter:
		s.Asked = nil
	case KindResult:
		return s.result(r)
	case KindStep:
		return s.step(r)
	}
	return nil
}

func (s *State) mark(m *Mark) {
	switch {
	case m == nil:
	case m.Type == MarkRestarted:
		s.Restarts++
	case m.Type == MarkEnded:
		s.Ended = m.Text
	}
}

func (s *State) intend(i *Intent) {
	switch {
	case i == nil:
	case i.CallID == "":
		s.Asked = i
	default:
		if s.Intents == nil {
			s.Intents = map[string]Intent{}
		}
		s.Intents[i.CallID] = *i
		s.Begun = s.Begun || i.Effect != readOnly
	}
}

func (s *State) result(r Record) error {
	if r.Step == nil {
		return fmt.Errorf("replaying the journal: result %d has no step", r.Seq)
	}
	if _, known := s.Results[r.Step.CallID]; known {
		return nil // the first counts
	}
	if s.Results == nil {
		s.Results = map[string]step.Step{}
	}
	s.Results[r.Step.CallID] = *r.Step
	if r.Ending != nil && s.Ending == nil {
		s.Ending = r.Ending
	}
	s.closeTurn()
	return nil
}

// closeTurn moves the results into the session once each call has one.
func (s *State) closeTurn() {
	if len(s.Steps) == 0 || len(s.Results) < len(s.Steps[len(s.Steps)-1].Calls) {
		return
	}
	turn := make([]step.Step, 0, len(s.Results))
	for _, t := range s.Results {
		turn = append(turn, t)
	}
	slices.SortFunc(turn, func(a, b step.Step) int { return cmp.Compare(a.Seq, b.Seq) })
	s.Steps = append(s.Steps, turn...)
	clear(s.Results)
	clear(s.Intents)
}

func (s *State) step(r Record) error {
	if r.Step == nil || r.Step.Seq != int64(len(s.Steps))+1 || len(s.Results) > 0 {
		return fmt.Errorf("replaying the journal: record %d does not follow step %d", r.Seq, len(s.Steps))
	}
	s.Steps = append(s.Steps, *r.Step)
	s.Ended = ""
	if r.Step.Role == step.RoleAssistant {
		s.Asked = nil
	}
	return nil
}
