package anthropic_test

import (
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/model/wiretest"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// Prices go by the input of each request, and by whether it is known.
func TestTheUsageOfEachRequestIsTold(t *testing.T) {
	reported := func(u step.Usage) model.RequestUsage { return model.RequestUsage{Usage: u, InputReported: true} }
	one := reported(step.Usage{InputTokens: 10, OutputTokens: 5})
	cut := reported(step.Usage{InputTokens: 10, OutputTokens: 1, Estimated: true})
	unknown := model.RequestUsage{Usage: step.Usage{InputTokens: model.EstimateInput(wiretest.Ask), OutputTokens: 1, Estimated: true}}
	pause := streaming(begin, text(0, "Wait."), end("pause_turn"))
	compacted := `{"input_tokens":20,"output_tokens":7,"iterations":[{"type":"compaction","input_tokens":100,"cache_read_input_tokens":5,"output_tokens":50},{"type":"message","input_tokens":20,"output_tokens":7}]}`
	cases := map[string]struct {
		answers []wiretest.RoundTrip
		want    []model.RequestUsage
	}{
		"one request":                        {[]wiretest.RoundTrip{streaming(hi)}, nil},
		"an answer that paused":              {[]wiretest.RoundTrip{pause, streaming(hi)}, []model.RequestUsage{one, one}},
		"an answer that paused and was cut":  {[]wiretest.RoundTrip{pause, streaming(begin, text(0, "Hi"))}, []model.RequestUsage{one, cut}},
		"an answer that was cut":             {[]wiretest.RoundTrip{streaming(begin, text(0, "Hi"))}, []model.RequestUsage{cut}},
		"one that was cut without any usage": {[]wiretest.RoundTrip{streaming(text(0, "Hi"))}, nil},
		"one that paused without any usage":  {[]wiretest.RoundTrip{streaming(text(0, "Hi"), event("message_delta", `"delta":{"stop_reason":"pause_turn"}`), event("message_stop", "")), streaming(hi)}, []model.RequestUsage{unknown, one}},
		"the provider compacted the session": {
			[]wiretest.RoundTrip{streaming(begin, text(0, "Hi"), event("message_delta", `"delta":{"stop_reason":"end_turn"},"usage":`+compacted), event("message_stop", ""))},
			[]model.RequestUsage{reported(step.Usage{InputTokens: 105, CacheReadTokens: 5, OutputTokens: 50}), reported(step.Usage{InputTokens: 20, OutputTokens: 7})},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			network, _ := in(t, tc.answers...)
			var got []model.RequestUsage
			_, _ = model.Collect(at(t, network).Stream(t.Context(), wiretest.Ask), func(d model.Delta) {
				if d.Usage != nil {
					got = d.Requests
				}
			})
			if diff := gocmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
