package engine

import (
	"fmt"
	"sync"

	"github.com/deckhand-dev/deckhand/runner/journal"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// A session is what was recorded, folded.
type session struct {
	mu    sync.Mutex
	state journal.State
}

// read is the session as it stands. The steps in it never change; only more
// are added.
func (s *session) read() journal.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// record appends to the journal and, once it is there, to the session.
func (r *run) record(rec journal.Record) error {
	used := r.meter.read()
	rec.Meter = &used
	r.session.mu.Lock()
	defer r.session.mu.Unlock()
	if err := r.Journal.Append(rec); err != nil {
		return err
	}
	return r.session.state.Apply(rec)
}

// recordStep gives a step its place and records it.
func (r *run) recordStep(s step.Step) error {
	s.Seq = int64(len(r.session.read().Steps)) + 1
	if err := r.record(journal.Record{Kind: journal.KindStep, Step: &s}); err != nil {
		return fmt.Errorf("recording step %d: %w", s.Seq, err)
	}
	r.emitStep(s)
	return nil
}

// tell records what the runner says to the model.
func (r *run) tell(text string) error {
	return r.recordStep(step.Step{
		Role:  step.RoleUser,
		Parts: []step.Part{{Kind: step.PartText, Text: r.Redact.String(text)}},
		At:    r.Now().UTC(),
	})
}

// ended says whether a call has ended the Run.
func (s *session) ended() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.Ending != nil
}
