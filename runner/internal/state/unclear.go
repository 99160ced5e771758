package state

import (
	"slices"

	"github.com/deckhand-dev/deckhand/runner/step"
)

// maxUnclear bounds how many pairs of Model and finish reason are counted.
const maxUnclear = 16

// UnclearAnswers counts the answers of a Model that counted although their finish reason
// does not say that they are whole.
type UnclearAnswers struct {
	Model, Reason string
	Count         int64
}

// UnclearAnswers returns the counts, in the order in which the reasons came.
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
