package openai

import (
	"maps"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/model/httpapi"
	"github.com/deckhand-dev/deckhand/runner/model"
)

func TestEveryLevelOfReasoningIsAPatch(t *testing.T) {
	rows := maps.Clone(dialects)
	rows["Azure, dated"] = azureDated
	for name, d := range rows {
		for prefix, l := range d.reasoning {
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
	b := byModel[int]{"": 1, "kimi-": 2, "kimi-k2.5": 3}
	for name, want := range map[string]int{"": 1, "gpt": 1, "kimi": 1, "kimi-k2": 2, "kimi-k2.5-x": 3} {
		if got := b.of(name); got != want {
			t.Errorf("%q: %d, want %d", name, got, want)
		}
	}
	if got := byModel[int](nil).of("x"); got != 0 {
		t.Errorf("none at all: %d", got)
	}
}
