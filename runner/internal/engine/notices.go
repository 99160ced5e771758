package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

const (
	// maxLost bounds what a session is told of what was lost.
	maxLost = 4 << 10
)

// isRetry says whether the session goes on from an attempt that failed, which it
// has not been told yet.
func (s *session) isRetry() bool {
	return s.records.name == "" && s.run.config.Task.Retry != "" && s.run.restarts == 0
}

// resumeNotice is what a session that is taken up is told.
func (s *session) resumeNotice() string {
	var news []string
	if s.isRetry() {
		news = append(news, fmt.Sprintf(noteAttempt, s.run.config.Task.Retry, s.run.config.Task.Attempt))
	}
	files := noteFiles
	if len(s.run.config.LostFiles) > 0 {
		files = fmt.Sprintf(noteLostFiles, strings.Join(s.run.config.LostFiles, " and "))
	}
	switch {
	case len(s.run.config.Lost) > 0:
		list := redact.Printable(s.run.config.Redact.String("- " + strings.Join(s.run.config.Lost, "\n- ")))
		news = append(news, fmt.Sprintf(noteLost, task.Cut(list, maxLost), files))
	case len(s.run.config.LostFiles) > 0:
		news = append(news, files)
	}
	return strings.Join(news, "\n")
}

// recordNotice records what the model is to be told before its next turn, which may be in
// another attempt.
func (s *session) recordNotice(news string) error {
	if news == "" || slices.Contains(s.records.read().Notices, news) {
		return nil
	}
	if err := s.records.Record(journal.Record{Kind: journal.KindMark, Mark: &journal.Mark{Type: journal.MarkNotice, Text: news}}); err != nil {
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

// noted is what the runner has to say to the model before its next turn.
func (s *session) noted() string {
	if !s.warned && s.run.config.LowSpace != nil && s.run.config.LowSpace() {
		s.warned = true
		s.notes = append(s.notes, noteLowSpace)
	}
	return strings.Join(append(slices.Clone(s.records.read().Notices), s.notes...), "\n")
}
