package engine

import (
	"github.com/deckhand-dev/deckhand/runner/internal/engine/approval"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/toolcall"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// recordMessages tells the model what people said to it, each with the decision that it
// came in: one record, so that it is said once, whatever happens.
func (s *session) recordMessages(messages []task.Decision) error {
	for _, d := range messages {
		st := s.records.userStep(task.Cut(d.Value, toolcall.MaxResult), step.NoteMessage)
		said := journal.Decision{Name: d.Name, By: task.Cut(s.run.config.Redact.String(d.By), approval.MaxField), Type: d.Type}
		if err := s.records.recordStep(st, &said); err != nil {
			return err
		}
		s.run.requests.ReportDecision(s.records, said)
	}
	return nil
}
