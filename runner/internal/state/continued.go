package state

import (
	"slices"

	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// A Before describes the Run whose session another Run continues.
type Before struct {
	// Run is its name, and Ended the reason with which it ended; empty: the session was taken over up to a step.
	Run, Ended string
	// Step is that step; 0: all of them were taken over.
	Step int64
}

// handOver makes the state of the Run that continues this one. What was said and done is kept. What belongs to a Run is
// not: its usage, grants, Decisions, requests and effects, and how it ended.
func (r *Run) handOver(c journal.Continued) {
	own := r.Session("")
	before := &Before{Run: c.Run, Ended: own.Ended, Step: c.Step}
	*r = Run{Agent: r.Agent, sessions: r.sessions}
	for _, s := range r.sessions {
		s.handOver(c)
	}
	own.Before = before
}

// handOver makes the session one of the Run that continues this one.
func (s *Session) handOver(c journal.Continued) {
	kept := Session{
		Steps: foreign(s.Steps, c), Last: s.Last, TakenOver: s.Last, Turns: s.Turns, CompactedAt: s.CompactedAt,
		Results: s.Results, Intents: s.Intents, Since: s.Since,
	}
	for _, call := range kept.Open() {
		if asked, ok := s.Delegated(call.ID); ok {
			kept.begin(call, asked)
		}
	}
	*s = kept
}

// begin makes a call that waited for a child Run a call that was interrupted: the child Run belongs to the Run before.
func (s *Session) begin(call step.Call, asked Asked) {
	s.applyIntent(journal.Record{At: asked.Since, Intent: &journal.Intent{CallID: call.ID, Name: call.Name, Args: call.Args}})
}

// foreign returns the steps with another name in place of those of Models whose definitions have changed, so that opaque
// parts of their answers are not sent to the Models that have the names now. No Model has such a name.
func foreign(steps []step.Step, c journal.Continued) []step.Step {
	out := slices.Clone(steps)
	for i := range out {
		if m := out[i].Model; m != "" && !slices.Contains(c.Models, m) {
			out[i].Model = m + " of Run " + c.Run
		}
	}
	return out
}
