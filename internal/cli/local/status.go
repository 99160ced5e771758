package local

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/deckhand-dev/deckhand/internal/cli/terminal"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A status keeps the values of the status line of a local Run, from its events.
type status struct {
	mu            sync.Mutex
	begun         time.Time
	step          events.StepStarted // zero: none has started
	stepBegun     time.Time
	tokens, cost  int64
	isWithoutCost bool
	shown         time.Time // when something was last printed; zero: unknown
}

// maxSilence is how long nothing is printed where there is no status line. Pipes and logs of CI then have a line that
// says what the Run waits for.
const maxSilence = 30 * time.Second

// add counts an event.
func (s *status) add(e events.Line, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e.Type { //nolint:exhaustive // the others change nothing that is shown
	case step.EventStepStarted:
		if json.Unmarshal(e.Data, &s.step) == nil {
			s.stepBegun = now
		}
	case step.EventCallStarted:
		var d events.CallStarted
		if json.Unmarshal(e.Data, &d) == nil {
			s.step.ID, s.step.Name, s.stepBegun = d.ID, d.Name, now
		}
	case step.EventStepFinished:
		var d events.StepFinished
		if json.Unmarshal(e.Data, &d) != nil || d.Step.Role != step.RoleAssistant {
			return
		}
		s.tokens += d.Step.Usage.InputTokens + d.Step.Usage.OutputTokens
		s.cost += d.Step.Usage.CostMicroUSD
		s.isWithoutCost = s.isWithoutCost || !d.Step.Usage.Priced
	}
}

// text returns the status line.
func (s *status) text(now time.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	parts := []string{"Starting"}
	if s.step.Name != "" {
		parts = []string{"Running", fmt.Sprintf("step %s, %s %s", s.step.ID, s.step.Name, terminal.Took(s.stepBegun, now))}
	}
	if s.tokens > 0 {
		parts = append(parts, fmt.Sprintf("%d tokens", s.tokens))
		if !s.isWithoutCost {
			parts = append(parts, task.Money(s.cost))
		}
	}
	return untrusted.Line(strings.Join(append(parts, terminal.Took(s.begun, now)), " · "), 400)
}

// afterSilence is the status line if nothing was printed for long; else empty. It counts as printed.
func (s *status) afterSilence(now time.Time) string {
	s.mu.Lock()
	if s.shown.IsZero() {
		s.shown = now
	}
	isSilent := now.Sub(s.shown) >= maxSilence
	if isSilent {
		s.shown = now
	}
	s.mu.Unlock()
	if !isSilent {
		return ""
	}
	return s.text(now)
}

// wasShown notes that something was printed.
func (s *status) wasShown(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shown = now
}

// A shownWriter writes a conversation, and notes that something was printed.
type shownWriter struct {
	io.Writer

	watch *watch
}

func (s shownWriter) Write(text []byte) (int, error) {
	s.watch.status.wasShown(s.watch.run.Now())
	return s.Writer.Write(text)
}

// showStatus shows the status until stop is called: in the status line or, without it, in a line after each silence.
func (w *watch) showStatus() (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(w.run.Interval)
		defer ticker.Stop()
		for {
			if w.console.Status != nil {
				w.console.SetStatus(w.status.text(w.run.Now()))
			} else {
				w.console.Say(w.run.Err, func() string { return w.status.afterSilence(w.run.Now()) })
			}
			select {
			case <-end:
				w.console.SetStatus("")
				return
			case <-ticker.C:
			}
		}
	}()
	return func() { close(end); <-ended }
}
