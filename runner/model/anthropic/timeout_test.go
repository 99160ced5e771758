package anthropic_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/model/wiretest"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/anthropic"
)

// tick is an event that keeps a stream alive.
const tick = "event: ping\ndata: {\"type\": \"ping\"}\n\n"

func TestTimeouts(t *testing.T) {
	silent := wiretest.RoundTrip(func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	})
	pausing := func(r *http.Request) (*http.Response, error) {
		return wiretest.Dripping(100*time.Second, begin, text(0, "Wait."), end("pause_turn"))(r)
	}
	cases := map[string]struct {
		network http.RoundTripper
		want    string // of the error; empty: a whole answer
		after   time.Duration
		own     bool // the server is the user's own
	}{
		"an endpoint that never answers is left after the idle time":    {silent, "no byte came for 2m0s before the answer began (timeouts.firstByte)", 2 * time.Minute, false},
		"a stream that falls silent is left after the idle time":        {wiretest.Dripping(time.Second, begin+text(0, "Hi")), "no byte came for 2m0s within the answer (timeouts.betweenBytes)", 121 * time.Second, false},
		"an own server may be silent for longer":                        {wiretest.Dripping(14*time.Minute, begin+text(0, "Hi")+end("end_turn")), "", 14 * time.Minute, true},
		"a byte now and then, even of a ping, is enough":                {wiretest.Dripping(119*time.Second, tick, tick, begin+text(0, "Hi"), end("end_turn")), "", 476 * time.Second, false},
		"no call takes longer than the whole time":                      {wiretest.Dripping(100*time.Second, strings.Split(strings.Repeat(tick+"|", 20), "|")...), "the answer was not complete after 15m0s (timeouts.total)", 15 * time.Minute, false},
		"nor do all the requests that its pauses lead to":               {wiretest.RoundTrip(pausing), "the answer was not complete after 15m0s (timeouts.total)", 15 * time.Minute, false},
		"a reason before the text and the call ends nothing":            {wiretest.Dripping(7*time.Second, begin+finish("end_turn"), text(0, "Hi")+finish("end_turn"), tool(1, "now", "{}"), end("tool_use")), "", 28 * time.Second, false},
		"once it said that it finished, its end is waited for 5 s only": {wiretest.Dripping(time.Second, begin+text(0, "Hi"), finish("end_turn")), "", 7 * time.Second, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				_, err := collect(t, tc.network, func(o *anthropic.Options) {
					o.Timeouts.Total = 15 * time.Minute
					if tc.own {
						o.Provider, o.Endpoint = anthropic.ProviderAnthropicCompatible, "http://endpoint"
					}
				})
				switch {
				case tc.want == "" && err != nil:
					t.Error(err)
				case tc.want != "" && (!model.Transient(err) || !strings.Contains(err.Error(), tc.want)):
					t.Errorf("got %v, want %q", err, tc.want)
				}
				if took := time.Since(began); took != tc.after {
					t.Errorf("took %s, want %s", took, tc.after)
				}
			})
		})
	}
}
