package runner

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/engine"
)

func TestSignalsAreHeardWhenTheyChange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "signals.json")
	synctest.Test(t, func(t *testing.T) {
		o := newOperator()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go o.listen(ctx, path, slog.New(slog.DiscardHandler))
		says := []struct {
			text string
			stop bool
		}{
			{"", false},
			{`{"pause":false}`, false},
			{`{"stop":true,"anything":1}`, true},
			{`{"broken`, true},
			{`{}`, false},
		}
		for _, s := range says {
			write(t, path, s.text)
			<-time.After(pollSignals) // of the test's own clock
			synctest.Wait()
			if o.stop.Load() != s.stop {
				t.Errorf("%q is heard as stop %t", s.text, o.stop.Load())
			}
		}
	})
}

// Whoever waits is woken when the end of a child Run is said that was not before.
func TestTheEndsOfChildRunsAreHeard(t *testing.T) {
	o := newOperator()
	says := []struct {
		text  string
		want  []string // of which requests
		wakes bool
	}{
		{`{"children":[{"request":"s2c1","run":"a","text":"one","usage":{"costMicroUSD":1}}]}`, []string{"s2c1"}, true},
		{`{"pause":true,"children":[{"request":"s2c1","run":"a","text":"one","usage":{"costMicroUSD":1}}]}`, []string{"s2c1"}, false},
		{`{"children":[{"request":"s2c1","run":"a"},{"request":"s2c2","message":"refused"}]}`, []string{"s2c1", "s2c2"}, true},
		{`{"children":[{"request":"s2c2","run":"b"}]}`, []string{"s2c2"}, true},
		{`{"broken`, []string{"s2c2"}, false},
		{`{}`, nil, true},
	}
	for _, s := range says {
		said := o.Said()
		o.hear([]byte(s.text), slog.New(slog.DiscardHandler))
		woken := false
		select {
		case <-said:
			woken = true
		default:
		}
		var got []string
		for _, c := range o.Ended() {
			got = append(got, c.Request)
		}
		if !slices.Equal(got, s.want) || woken != s.wakes {
			t.Errorf("%s is heard as %v, waking %t", s.text, got, woken)
		}
	}
}

// A second signal is as good as the end of the grace: whoever presses Ctrl-C
// twice means it.
func TestInterruption(t *testing.T) {
	ctx, begun, release := interruption(t.Context())
	defer release()
	for range 2 {
		if err := syscall.Kill(syscall.Getpid(), syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		<-begun
	}
	<-ctx.Done()
	if cause := context.Cause(ctx); !errors.Is(cause, engine.ErrInterrupted) {
		t.Errorf("cause %v, want %v", cause, engine.ErrInterrupted)
	}
}
