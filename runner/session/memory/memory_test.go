package memory

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/runner/session"
	"github.com/deckhand-dev/deckhand/runner/session/sessiontest"
	"github.com/deckhand-dev/deckhand/runner/step"
)

func TestConformance(t *testing.T) {
	sessiontest.Run(t, func(_ *testing.T, now func() time.Time) session.Store { return New(Options{Now: now}) })
}

func textStep(seq int64, bytes int) step.Step {
	return step.Step{Seq: seq, Parts: []step.Part{{Kind: step.PartText, Text: strings.Repeat("x", bytes)}}}
}

func TestWhatIsKeptIsBounded(t *testing.T) {
	s := New(Options{Sessions: 2, Bytes: 10_000})
	row := func(id string) session.Row { return session.Row{ID: id} }
	for _, call := range []struct {
		does string
		err  error
		want error
	}{
		{"a session", s.Append(t.Context(), row("a"), 0, textStep(1, 6_000)), nil},
		{"a step too large", s.Append(t.Context(), row("a"), 1, textStep(2, 6_000)), session.ErrFull},
		{"a session too large", s.Append(t.Context(), row("b"), 0, textStep(1, 6_000)), session.ErrFull},
		{"a second session", s.Append(t.Context(), row("b"), 0, textStep(1, 1_000)), nil},
		{"a third session", s.Append(t.Context(), row("c"), 0), session.ErrFull},
		{"a session less", s.Delete(t.Context(), "a"), nil},
		{"a third session, now that there is room", s.Append(t.Context(), row("c"), 0, textStep(1, 6_000)), nil},
	} {
		if !errors.Is(call.err, call.want) {
			t.Errorf("%s: error %v, want %v", call.does, call.err, call.want)
		}
	}
	if err := s.Fork(t.Context(), "c", 1, row("d")); !errors.Is(err, session.ErrFull) {
		t.Errorf("a fork: error %v, want ErrFull", err)
	}
}
