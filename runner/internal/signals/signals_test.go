package signals_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/task"
)

func TestUpdateWakesOnceForEachChange(t *testing.T) {
	end := func(run string) []task.Child { return []task.Child{{Request: "s2c1", Run: run}} }
	var l signals.Latest
	changes := []struct {
		what   string
		change func(*signals.Signals)
		wakes  bool
	}{
		{"nothing", func(*signals.Signals) {}, false},
		{"a decision", func(s *signals.Signals) { s.Decisions = []task.Decision{{Name: "d"}} }, true},
		{"the same decision in a new list", func(s *signals.Signals) { s.Decisions = []task.Decision{{Name: "d"}} }, false},
		{"a child Run", func(s *signals.Signals) { s.Children = end("a") }, true},
		{"the same child Run", func(s *signals.Signals) { s.Children = end("a") }, false},
		{"another child Run of the same request", func(s *signals.Signals) { s.Children = end("b") }, true},
		{"a pause", func(s *signals.Signals) { s.Paused = true }, true},
		{"its end", func(s *signals.Signals) { s.Paused = false }, true},
		{"a stop", func(s *signals.Signals) { s.Stopped = true }, true},
		{"a shutdown", func(s *signals.Signals) { s.Interrupted = true }, true},
		{"neither", func(s *signals.Signals) { s.Stopped, s.Interrupted = false, false }, false},
	}
	for _, c := range changes {
		_, changed := l.Current()
		l.Update(c.change)
		woken := false
		select {
		case <-changed:
			woken = true
		default:
		}
		if woken != c.wakes {
			t.Errorf("%s wakes: %t", c.what, woken)
		}
	}
	if now, _ := l.Current(); !now.Stopped || !now.Interrupted {
		t.Errorf("a stop or a shutdown was taken back: %+v", now)
	}
}

func TestContextEndsWithTheSignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l signals.Latest
		cause := errors.New("stopped")
		ctx, cancel := signals.Context(t.Context(), &l, signals.Stopped, cause)
		defer cancel()
		l.Update(func(s *signals.Signals) { s.Paused = true })
		synctest.Wait()
		if ctx.Err() != nil {
			t.Errorf("it ended with another signal: %v", context.Cause(ctx))
		}
		l.Update(func(s *signals.Signals) { s.Stopped = true })
		<-ctx.Done()
		if got := context.Cause(ctx); !errors.Is(got, cause) {
			t.Errorf("cause %v, want %v", got, cause)
		}
	})
}
