package openai_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/model/wiretest"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/openai"
	"github.com/deckhand-dev/deckhand/runner/model/provider"
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
	header := wiretest.RoundTrip(func(r *http.Request) (*http.Response, error) {
		<-time.After(10 * time.Minute) // in the bubble's time
		return wiretest.Dripping(10*time.Minute, text+finish+"data: [DONE]\n\n")(r)
	})
	ticks := strings.Split(strings.Repeat(tick+"|", 100), "|")
	cases := map[string]struct {
		provider string
		timeouts provider.Timeouts
		network  http.RoundTripper
		want     *model.TimeoutError // nil: a whole answer
		after    time.Duration
	}{
		"an endpoint of a hosted provider that never answers is left after 2 minutes": {openai.ProviderOpenAI, provider.Timeouts{}, silent, first(2 * time.Minute), 2 * time.Minute},
		"a hosted stream that falls silent is left after 2 minutes":                   {openai.ProviderDeepSeek, provider.Timeouts{}, wiretest.Dripping(time.Second, text), between(2 * time.Minute), 121 * time.Second},
		"an own server that never answers is left after 15 minutes":                   {openai.ProviderOpenAICompatible, provider.Timeouts{}, silent, first(15 * time.Minute), 15 * time.Minute},
		"the stream of an own server that falls silent is left after 15 minutes":      {openai.ProviderOllama, provider.Timeouts{}, wiretest.Dripping(time.Second, text), between(15 * time.Minute), 901 * time.Second},
		"a slow header does not shorten the wait for the first byte":                  {openai.ProviderOpenAICompatible, provider.Timeouts{}, header, nil, 20 * time.Minute},
		"a Model may allow longer for the first byte than 15 minutes":                 {openai.ProviderOpenAI, provider.Timeouts{FirstByte: 2 * time.Hour}, wiretest.Dripping(100*time.Minute, text+finish+"data: [DONE]\n\n"), nil, 100 * time.Minute},
		"a keep-alive is not the beginning of an answer":                              {openai.ProviderOpenAI, provider.Timeouts{FirstByte: 5 * time.Minute}, wiretest.Dripping(4*time.Minute, tick, text+finish+"data: [DONE]\n\n"), nil, 8 * time.Minute},
		"an answer that began has another limit":                                      {openai.ProviderOpenAI, provider.Timeouts{FirstByte: 5 * time.Minute, BetweenBytes: time.Minute}, wiretest.Dripping(4*time.Minute, text, text), between(time.Minute), 5 * time.Minute},
		"a byte now and then, even of a comment, is enough":                           {openai.ProviderOpenAI, provider.Timeouts{}, wiretest.Dripping(119*time.Second, tick, tick, text, finish+"data: [DONE]\n\n"), nil, 476 * time.Second},
		"keep-alives alone end after the whole time":                                  {openai.ProviderOpenAI, provider.Timeouts{}, wiretest.Dripping(100*time.Second, ticks...), total(62 * time.Minute), 62 * time.Minute},
		"no call takes longer than the whole time that a Model allows":                {openai.ProviderOpenAI, provider.Timeouts{Total: 10 * time.Minute}, wiretest.Dripping(100*time.Second, ticks...), total(10 * time.Minute), 10 * time.Minute},
		"once it said that it finished, its end is waited for 5 s only":               {openai.ProviderOpenAI, provider.Timeouts{}, wiretest.Dripping(time.Second, text, finish), nil, 7 * time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				r, err := collect(t, tc.network, func(o *openai.Options) { o.Provider, o.Timeouts = tc.provider, tc.timeouts })
				if took := time.Since(start); took != tc.after {
					t.Errorf("took %s, want %s", took, tc.after)
				}
				got, _ := errors.AsType[*model.TimeoutError](err)
				if diff := cmp.Diff(tc.want, got); diff != "" || tc.want == nil && (err != nil || r.Finish != step.FinishStop) {
					t.Errorf("finish %q, error %v, -want +got:\n%s", r.Finish, err, diff)
				}
			})
		})
	}
}

func first(d time.Duration) *model.TimeoutError {
	return &model.TimeoutError{Field: model.TimeoutFirstByte, After: d}
}

func between(d time.Duration) *model.TimeoutError {
	return &model.TimeoutError{Field: model.TimeoutBetweenBytes, After: d}
}

func total(d time.Duration) *model.TimeoutError {
	return &model.TimeoutError{Field: model.TimeoutTotal, After: d}
}

// A reader may take its time: only waiting for the endpoint counts.
func TestASlowReaderIsNoSilentEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := `data: {"choices":[{"delta":{"content":"Hi"}}]}` + "\n\n"
		m := at(t, wiretest.Dripping(time.Second, text, text, `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n"),
			func(o *openai.Options) { o.Timeouts.BetweenBytes = 2 * time.Second })
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
