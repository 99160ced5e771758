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
		s := sorter{next: 1, early: map[int64]step.Step{}}
		for r, err := range records {
			if err != nil {
				yield(step.Step{}, err)
				return
			}
			for t := range s.add(r, session) {
				if t.Seq >= from && !yield(t, nil) {
					return
				}
			}
		}
	}
}

// A sorter holds steps back until those before them have come.
type sorter struct {
	next  int64
	early map[int64]step.Step
}

// add takes the step of a record, if it is of the session and the first of its
// number, and yields those whose turn it is.
func (s *sorter) add(r Record, session string) iter.Seq[step.Step] {
	return func(yield func(step.Step) bool) {
		if r.Session != session || r.Step == nil || r.Kind != KindStep && r.Kind != KindResult {
			return
		}
		if _, twice := s.early[r.Step.Seq]; !twice && r.Step.Seq >= s.next {
			s.early[r.Step.Seq] = *r.Step
		}
		for due, ok := s.early[s.next]; ok; due, ok = s.early[s.next] {
			delete(s.early, s.next)
			s.next++
			if !yield(due) {
				return
			}
		}
	}
}
