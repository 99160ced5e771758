package runner

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deckhand-dev/deckhand/runner/engine"
)

func TestSignalsAreHeardWhenTheyChange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "signals.json")
	synctest.Test(t, func(t *testing.T) {
		o := newOperator()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go o.listen(ctx, path, slog.New(slog.DiscardHandler))
		says := []struct {
			text  string
			stop  bool
			every time.Duration
		}{
			{"", false, 0},
			{`{"reportSeconds":30}`, false, 30 * time.Second},
			{`{"reportSeconds":30,"stop":true,"anything":1}`, true, 30 * time.Second},
			{`{"broken`, true, 30 * time.Second},
			{`{}`, false, 0},
		}
		for _, s := range says {
			write(t, path, s.text)
			<-time.After(pollSignals) // of the test's own clock
			synctest.Wait()
			if o.stop.Load() != s.stop || o.reportEvery() != s.every {
				t.Errorf("%q is heard as stop %t, every %s", s.text, o.stop.Load(), o.reportEvery())
			}
		}
	})
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
