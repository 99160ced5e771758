package anthropic_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// Two generations in one stream are never merged: a gateway that asks again
// behind our back would make the calls of both be executed.
func TestASecondMessageInAStreamIsAnErrorThatIsRetried(t *testing.T) {
	another := strings.Replace(begin, "msg_1", "msg_2", 1)
	unnamed := strings.Replace(begin, `"id":"msg_1",`, "", 1)
	cases := map[string]struct {
		stream string
		isOne  bool // it is one message nevertheless
	}{
		"another id after a whole call":      {stream: begin + tool(0, "delete") + another + tool(0, "delete") + end("tool_use")},
		"another id after a stop reason":     {stream: begin + tool(0, "delete") + finish("tool_use") + another + text(0, "Hi") + end("end_turn")},
		"another id before a word":           {stream: begin + another + text(0, "Hi") + end("end_turn")},
		"the same id after a whole call":     {stream: begin + tool(0, "delete") + begin + tool(0, "delete") + end("tool_use")},
		"no id after a text":                 {stream: unnamed + text(0, "Hi") + unnamed + text(0, "Hi") + end("end_turn")},
		"the same id before a word":          {stream: begin + begin + text(0, "Hi") + end("end_turn"), isOne: true},
		"an id after none, before a word":    {stream: unnamed + begin + text(0, "Hi") + end("end_turn"), isOne: true},
		"another id after the message ended": {stream: hi + another + tool(0, "delete") + end("tool_use"), isOne: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := collect(t, streaming(tc.stream))
			if tc.isOne {
				if err != nil || got.Finish != step.FinishStop || summarize(got).Text != "Hi" || len(got.Calls) > 0 {
					t.Errorf("error %v, %+v", err, got)
				}
				return
			}
			var incomplete *model.IncompleteError
			if !errors.As(err, &incomplete) || !model.Transient(err) || !strings.Contains(err.Error(), "second message") || got.Finish != "" {
				t.Errorf("error %v, finish %q, calls %+v", err, got.Finish, got.Calls)
			}
			if got.Usage.InputTokens != 10 || !got.Usage.Estimated {
				t.Errorf("what was spent is not charged: %+v", got.Usage)
			}
		})
	}
}
