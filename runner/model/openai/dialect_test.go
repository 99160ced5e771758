package openai

import (
	"fmt"
	"maps"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/model/httpapi"
	"github.com/deckhand-dev/deckhand/runner/internal/model/wiretest"
	"github.com/deckhand-dev/deckhand/runner/model"
)

func TestEveryLevelOfReasoningIsAPatch(t *testing.T) {
	rows := maps.Clone(dialects)
	rows["Azure, dated"] = azureDated
	for name, d := range rows {
		for prefix, r := range d.reasoning {
			l := r.value
			for _, level := range []model.Reasoning{model.ReasoningOff, model.ReasoningLow, model.ReasoningMedium, model.ReasoningHigh} {
				if l[level] == "" {
					t.Errorf("%s %q does not know %s", name, prefix, level)
				}
				if err := httpapi.Merge(map[string]any{}, l[level]); err != nil {
					t.Errorf("%s %q %s: %v", name, prefix, level, err)
				}
			}
		}
		if err := httpapi.Merge(map[string]any{}, d.extraBody); err != nil || d.reasoning.of("any") == nil {
			t.Errorf("%s: always %v, levels for any model %v", name, err, d.reasoning.of("any"))
		}
	}
}

func TestTheLongestPrefixCounts(t *testing.T) {
	b := byModel[int]{"": {value: 1}, "kimi-": {value: 2}, "kimi-k2.5": {value: 3}}
	for name, want := range map[string]int{"": 1, "gpt": 1, "kimi": 1, "kimi-k2": 2, "kimi-k2.5-x": 3} {
		if got := b.of(name); got != want {
			t.Errorf("%q: %d, want %d", name, got, want)
		}
	}
	if got := byModel[int](nil).of("x"); got != 0 {
		t.Errorf("none at all: %d", got)
	}
}

// Each setting that depends on the model has an address and a date.
func TestEachSettingSaysWhereItIsFrom(t *testing.T) {
	rows := maps.Clone(dialects)
	rows["Azure, dated"] = azureDated
	for name, d := range rows {
		checkSources(t, name+", reasoning", d.reasoning)
		checkSources(t, name+", sampling", d.sampling)
		checkSources(t, name+", caching", d.marked)
	}
}

func checkSources[T any](t *testing.T, what string, b byModel[T]) {
	t.Helper()
	for prefix, r := range b {
		wiretest.CheckSources(t, fmt.Sprintf("%s of %q", what, prefix), r.sources, r.date)
	}
}
