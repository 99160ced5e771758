package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/approval"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/toolcall"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// recordMessages tells the model what people said to it, each with the decision that it
// came in: one record, so that it is said once, whatever happens.
func (s *session) recordMessages(ctx context.Context, messages []task.Decision) error {
	for _, d := range messages {
		text := task.Cut(s.run.config.Redact.String(d.Value), toolcall.MaxResult) // redacted whole: a piece of a secret would not be known
		st := s.records.userStep(text, step.NoteMessage)
		for _, path := range d.Images {
			part := s.calls.ShowPath(ctx, path)
			if part.File == nil {
				part.Text = "\n" + part.Text
			}
			st.Parts = append(st.Parts, part)
		}
		said := journal.Decision{Name: d.Name, By: task.Cut(s.run.config.Redact.String(d.By), approval.MaxField), Type: d.Type}
		if err := s.records.recordStep(st, &said); err != nil {
			return err
		}
		s.run.requests.ReportDecision(s.records, said)
	}
	return nil
}

// showPromptFiles adds the files that the Run shows with its prompt. One that cannot be shown ends
// the Run: the model would work without it.
func (s *session) showPromptFiles(ctx context.Context, first *step.Step) error {
	if s.records.name != "" {
		return nil
	}
	var size int64
	for i, path := range s.run.config.Task.Images {
		part, err := s.calls.LoadPath(ctx, path)
		if err != nil {
			return task.End(task.ReasonMisconfigured, "spec.images[%d] of the Run, %s, cannot be shown: %w", i, path, err)
		}
		if size += part.File.Size; size > model.MaxFileBytes {
			const mib = 1 << 20
			return task.End(task.ReasonMisconfigured, "spec.images of the Run have %.1f MiB up to spec.images[%d], %s, and at most %d MiB are sent in all. Show fewer or smaller files",
				float64(size)/mib, i, path, model.MaxFileBytes/mib)
		}
		first.Parts = append(first.Parts, part)
	}
	return nil
}

// recordNotice records what the model is to be told before its next turn, which may be in
// another attempt.
func (s *session) recordNotice(notice string) error {
	if notice == "" || slices.Contains(s.records.read().Notices, notice) {
		return nil
	}
	if err := s.records.Record(journal.Record{Kind: journal.KindMark, Mark: &journal.Mark{Type: journal.MarkNotice, Text: notice}}); err != nil {
		return fmt.Errorf("recording a notice to the model: %w", err)
	}
	return nil
}

// nudge tells the model what the runner has to say.
func (s *session) nudge(text string, note step.Note) error {
	if note == step.NoteRunner {
		s.notes = nil
	} else {
		s.records.Emit("Notice to the model: "+text, events.Nudged{Text: text})
	}
	return s.records.recordMessage(text, note)
}

// runnerNotes is what the runner has to say to the model before its next turn.
func (s *session) runnerNotes() string {
	return strings.Join(append(slices.Clone(s.records.read().Notices), s.notes...), "\n")
}

// checkSpace adds a note, once, if the workspace has little space left.
func (s *session) checkSpace() {
	if !s.warned && s.run.config.LowSpace != nil && s.run.config.LowSpace() {
		s.warned = true
		s.notes = append(s.notes, noteLowSpace)
	}
}
