package local

import (
	"encoding/json"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/internal/cli/terminal"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/step"
)

func TestStatusOfALocalRun(t *testing.T) {
	event := func(as step.EventType, data string) events.Line {
		return events.Line{Type: as, Data: json.RawMessage(data)}
	}
	s := status{begun: gen.Noon}
	for i, tc := range []struct {
		event events.Line
		want  string
	}{
		{event(step.EventRunStarted, `{}`), "Starting · 1s"},
		{event(step.EventStepStarted, `{"id":"s2","step":2,"kind":"Model","name":"sonnet"}`), "Running · step s2, sonnet 1s · 2s"},
		{event(step.EventStepFinished, `{"step":{"role":"assistant","usage":{"inputTokens":90,"outputTokens":10,"costMicroUSD":20000,"priced":true}}}`), "Running · step s2, sonnet 2s · 100 tokens · 0.02USD · 3s"},
		{event(step.EventCallStarted, `{"id":"s2c1","name":"shell\u001b[2J"}`), `Running · step s2c1, shell\x1b[2J 1s · 100 tokens · 0.02USD · 4s`},
		{event(step.EventStepFinished, `{"step":{"role":"assistant","usage":{"inputTokens":1}}}`), `Running · step s2c1, shell\x1b[2J 2s · 101 tokens · 5s`}, // of a model without a price
		{event(step.EventStepStarted, `no JSON`), `Running · step s2c1, shell\x1b[2J 3s · 101 tokens · 6s`},
	} {
		now := gen.Noon.Add(time.Duration(i) * time.Second)
		s.add(tc.event, now)
		if got := s.text(now.Add(time.Second)); got != tc.want {
			t.Errorf("%d: %q, want %q", i, got, tc.want)
		}
	}
}

// A pipe has no status line, and a model may be silent for minutes.
func TestALocalRunIsNotSilentWithoutATerminal(t *testing.T) {
	s := newSession(t)
	var seconds atomic.Int64
	s.Now = func() time.Time { return gen.Noon.Add(time.Duration(seconds.Add(1)) * time.Second) } // each look takes a second
	enough := make(chan struct{})
	var told []string
	s.Err = writerFunc(func(text []byte) (int, error) {
		if told = append(told, string(text)); len(told) == 3 {
			close(enough)
		}
		return len(text), nil
	})
	r := Run{Streams: &s.Streams, Shown: terminal.ConversationFlags{Color: "never"}}
	w, err := r.newWatch(t.Context(), process{}, "try")
	if err != nil {
		t.Fatal(err)
	}
	const begun = `{"v":1,"n":1,"attempt":1,"type":"step.started","data":{"id":"s2","step":2,"kind":"Model","name":"sonnet"}}` + "\n"
	if err := w.read(io.MultiReader(strings.NewReader(begun), readerFunc(func([]byte) (int, error) { <-enough; return 0, io.EOF }))); err != nil {
		t.Fatal(err)
	}
	for _, line := range told[:3] {
		if !strings.HasPrefix(line, "Running · step s2, sonnet ") || !strings.HasSuffix(line, "s\n") {
			t.Errorf("it says %q", line)
		}
	}
}

func TestALineAfterASilence(t *testing.T) {
	var s status
	for i, tc := range []struct {
		at    int
		shown bool // something was printed before
		want  bool
	}{{0, false, false}, {29, false, false}, {30, false, true}, {59, false, false}, {60, false, true}, {89, true, false}, {90, false, false}, {119, false, true}} {
		now := gen.Noon.Add(time.Duration(tc.at) * time.Second)
		if tc.shown {
			s.wasShown(now)
		}
		if got := s.afterSilence(now); (got != "") != tc.want {
			t.Errorf("%d: after %d s it says %q", i, tc.at, got)
		}
	}
}
