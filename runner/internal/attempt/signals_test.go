package attempt

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/signals"
)

// newTestReader reads signals files.
func newTestReader(told *signals.Latest) *signalsReader {
	return &signalsReader{latest: told, log: slog.New(slog.DiscardHandler), decode: json.Unmarshal}
}

func TestSignalsAreHeardWhenTheyChange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "signals.json")
	synctest.Test(t, func(t *testing.T) {
		var told signals.Latest
		r := newTestReader(&told)
		r.path = path
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go r.poll(ctx)
		says := []struct {
			text          string
			paused, stops bool
		}{
			{"", false, false},
			{`{"pause":true,"anything":1}`, true, false},
			{`{"broken`, true, false},
			{`{}`, false, false},
			{`{"stop":true}`, false, true},
			{`{}`, false, true}, // what was cancelled cannot be taken back
		}
		for _, s := range says {
			writeFile(t, path, s.text)
			<-time.After(pollSignals) // of the test's own clock
			synctest.Wait()
			if now, _ := told.Current(); now.Stopped != s.stops || now.Paused != s.paused {
				t.Errorf("%q is read as %+v", s.text, now)
			}
		}
	})
}

// Whoever waits is woken when the end of a child Run is said that was not before.
func TestTheEndsOfChildRunsAreHeard(t *testing.T) {
	var told signals.Latest
	says := []struct {
		text  string
		want  []string // of which requests
		wakes bool
	}{
		{`{"children":[{"request":"s2c1","run":"a","text":"one","usage":{"costMicroUSD":1}}]}`, []string{"s2c1"}, true},
		{`{"at":2,"children":[{"request":"s2c1","run":"a","text":"one","usage":{"costMicroUSD":1}}]}`, []string{"s2c1"}, false},
		{`{"children":[{"request":"s2c1","run":"a"},{"request":"s2c2","message":"refused"}]}`, []string{"s2c1", "s2c2"}, true},
		{`{"children":[{"request":"s2c2","run":"b"}]}`, []string{"s2c2"}, true},
		{`{"broken`, []string{"s2c2"}, false},
		{`{}`, nil, true},
	}
	for _, s := range says {
		_, said := told.Current()
		newTestReader(&told).apply([]byte(s.text))
		woken := false
		select {
		case <-said:
			woken = true
		default:
		}
		var got []string
		now, _ := told.Current()
		for _, c := range now.Children {
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
	var told signals.Latest
	ctx, release := interruption(t.Context(), &told)
	defer release()
	begun, cancel := untilInterrupted(t.Context(), &told)
	defer cancel()
	for range 2 {
		if err := syscall.Kill(syscall.Getpid(), syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		<-begun.Done()
	}
	<-ctx.Done()
	if cause := context.Cause(ctx); !errors.Is(cause, signals.ErrInterrupted) {
		t.Errorf("cause %v, want %v", cause, signals.ErrInterrupted)
	}
}
