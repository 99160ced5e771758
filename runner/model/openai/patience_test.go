package openai_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/openai"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// tick is a line that keeps a stream alive.
const tick = ": still here\n\n"

// dripping is an endpoint that writes a line every so often. When the lines are
// used up it keeps the connection open without a word.
func dripping(every time.Duration, lines ...string) roundTrip {
	return func(r *http.Request) (*http.Response, error) {
		reader, writer := io.Pipe()
		go func() {
			for _, line := range lines {
				select {
				case <-time.After(every): // in the bubble's time
				case <-r.Context().Done():
					return
				}
				if _, err := io.WriteString(writer, line); err != nil {
					return
				}
			}
		}()
		context.AfterFunc(r.Context(), func() { writer.CloseWithError(r.Context().Err()) })
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: reader}, nil
	}
}

func TestPatience(t *testing.T) {
	text := `data: {"choices":[{"delta":{"content":"Hi"}}]}` + "\n\n"
	finish := `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	silent := roundTrip(func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	})
	cases := map[string]struct {
		network http.RoundTripper
		want    string // of the error; empty: a whole answer
		after   time.Duration
	}{
		"an endpoint that never answers is left after the idle time":    {silent, "not a byte came for 2m0s", 2 * time.Minute},
		"a stream that falls silent is left after the idle time":        {dripping(time.Second, text), "not a byte came for 2m0s", 121 * time.Second},
		"a byte now and then, even of a comment, is enough":             {dripping(119*time.Second, tick, tick, text, finish+"data: [DONE]\n\n"), "", 476 * time.Second},
		"no call takes longer than the whole time":                      {dripping(100*time.Second, strings.Split(strings.Repeat(tick+"|", 20), "|")...), "the call took too long", 15 * time.Minute},
		"once it said that it finished, its end is waited for 5 s only": {dripping(time.Second, text, finish), "", 7 * time.Second},
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
		m := at(t, dripping(time.Second, text, text, `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n"),
			func(o *openai.Options) { o.IdleTimeout = 2 * time.Second })
		_, err := model.Collect(m.Stream(t.Context(), ask), func(d model.Delta) {
			time.Sleep(time.Minute) // in the bubble's time
		})
		if err != nil {
			t.Error(err)
		}
	})
}

func TestAnEndpointThatCannotBeReached(t *testing.T) {
	_, err := collect(t, roundTrip(func(*http.Request) (*http.Response, error) {
		return nil, errors.New("connection refused")
	}))
	var unavailable *model.UnavailableError
	if !errors.As(err, &unavailable) || unavailable.Status != 0 || unavailable.Message != "connection refused" {
		t.Errorf("got %v", err)
	}
}
