package journal

import (
	"iter"

	"github.com/deckhand-dev/deckhand/runner/step"
)

// Steps returns the steps of a session, from a number on, in their order, hidden
// ones too: a journal has the results of one turn in the order in which they
// came. It holds no more than those of one turn. An error ends it.
func Steps(records iter.Seq2[Record, error], session string, from int64) iter.Seq2[step.Step, error] {
	return func(yield func(step.Step, error) bool) {
		s := sorter{session: session, next: 1, early: map[int64]step.Step{}}
		s.yield = func(t step.Step) bool { return t.Seq < from || yield(t, nil) }
		for r, err := range records {
			if err != nil {
				yield(step.Step{}, err)
				return
			}
			if !s.add(r) {
				return
			}
		}
	}
}

// A sorter holds the steps of a session back until those before them have come.
type sorter struct {
	session string
	next    int64
	early   map[int64]step.Step
	yield   func(step.Step) bool
}

// add takes the step of a record, if it is the session's and the first of its
// number, and yields those whose turn it is. It says whether to go on.
func (s *sorter) add(r Record) bool {
	if r.Session != s.session || r.Step == nil || r.Kind != KindStep && r.Kind != KindResult {
		return true
	}
	if _, twice := s.early[r.Step.Seq]; !twice && r.Step.Seq >= s.next {
		s.early[r.Step.Seq] = *r.Step
	}
	for due, ok := s.early[s.next]; ok; due, ok = s.early[s.next] {
		delete(s.early, s.next)
		s.next++
		if !s.yield(due) {
			return false
		}
	}
	return true
}
