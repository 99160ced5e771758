package openai_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/model/wiretest"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/openai"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// tick is a line that keeps a stream alive.
const tick = ": still here\n\n"

func TestTimeouts(t *testing.T) {
	text := `data: {"choices":[{"delta":{"content":"Hi"}}]}` + "\n\n"
	finish := `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	silent := wiretest.RoundTrip(func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	})
	cases := map[string]struct {
		network http.RoundTripper
		want    string // of the error; empty: a whole answer
		after   time.Duration
	}{
		"an endpoint that never answers is left after the idle time":    {silent, "not a byte came for 2m0s", 2 * time.Minute},
		"a stream that falls silent is left after the idle time":        {wiretest.Dripping(time.Second, text), "not a byte came for 2m0s", 121 * time.Second},
		"a byte now and then, even of a comment, is enough":             {wiretest.Dripping(119*time.Second, tick, tick, text, finish+"data: [DONE]\n\n"), "", 476 * time.Second},
		"no call takes longer than the whole time":                      {wiretest.Dripping(100*time.Second, strings.Split(strings.Repeat(tick+"|", 20), "|")...), "the call took too long", 15 * time.Minute},
		"once it said that it finished, its end is waited for 5 s only": {wiretest.Dripping(time.Second, text, finish), "", 7 * time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				r, err := collect(t, tc.network)
				if took := time.Since(start); took != tc.after {
					t.Errorf("took %s, want %s", took, tc.after)
				}
				whole := err == nil && r.Finish == step.FinishStop
				failed := model.Transient(err) && strings.Contains(err.Error(), tc.want)
				if tc.want == "" && !whole || tc.want != "" && !failed {
					t.Errorf("finish %q, error %v, want %q", r.Finish, err, tc.want)
				}
			})
		})
	}
}

// A reader may take its time: only waiting for the endpoint counts.
func TestASlowReaderIsNoSilentEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := `data: {"choices":[{"delta":{"content":"Hi"}}]}` + "\n\n"
		m := at(t, wiretest.Dripping(time.Second, text, text, `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n"),
			func(o *openai.Options) { o.IdleTimeout = 2 * time.Second })
		_, err := model.Collect(m.Stream(t.Context(), wiretest.Ask), func(d model.Delta) {
			time.Sleep(time.Minute) // in the bubble's time
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestAnEndpointThatCannotBeReached(t *testing.T) {
	_, err := collect(t, wiretest.RoundTrip(func(*http.Request) (*http.Response, error) {
		return nil, errors.New("connection refused")
	}))
	var unavailable *model.UnavailableError
	if !errors.As(err, &unavailable) || unavailable.Status != 0 || unavailable.Message != "connection refused" {
		t.Errorf("got %v", err)
	}
}
