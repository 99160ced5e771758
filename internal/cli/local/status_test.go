package local

import (
	"encoding/json"
	"testing"
	"time"

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
