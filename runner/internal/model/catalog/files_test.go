package catalog

import (
	"net/url"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/runner/step"
)

func TestTakes(t *testing.T) {
	for model, want := range map[string]bool{
		"gpt-4": false, "gpt-4-0613": false, "openai/gpt-4": false, "gpt-3.5-turbo-0125": false,
		"gpt-4.1": true, "gpt-4-1": true, "gpt-4.1-2025-04-14": true, "gpt-4o": true, "gpt-4o-2024-08-06": true, "gpt-4-turbo": true, "gpt-4-1106-vision-preview": true,
		"o3-mini": false, "o3-mini-2025-01-31": false, "o3": true, "o3-mini-next": true,
		"openai/gpt-oss-120b": false, "gpt-oss:20b": false, "gpt-oss-next": true,
		"moonshotai/Kimi-K2-Thinking": false, "kimi-k2.5": true,
		"deepseek-flash": true, "deepseek-v4-pro": true, "claude-sonnet-4-5": true, "us.anthropic.claude-opus-4-5": true,
		"my-own-model": true, "": true,
	} {
		for _, kind := range []step.PartKind{step.PartImage, step.PartDocument} {
			if got := Takes(model, kind); got != want {
				t.Errorf("Takes(%q, %s) = %v, want %v", model, kind, got, want)
			}
		}
		if !Takes(model, step.PartText) {
			t.Errorf("%q takes no text", model)
		}
	}
}

// Each row says where it was read and when.
func TestTextModelsHaveSources(t *testing.T) {
	for _, m := range textModels {
		u, err := url.Parse(m.source)
		if _, dayErr := time.Parse(time.DateOnly, m.day); err != nil || dayErr != nil || u.Scheme != "https" || canonical(m.name) != m.name {
			t.Errorf("the row %+v has no source, no day or another name", m)
		}
	}
}
