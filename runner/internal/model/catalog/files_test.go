package catalog

import (
	"testing"

	"github.com/deckhand-dev/deckhand/runner/step"
)

func TestTakes(t *testing.T) {
	for model, want := range map[string]bool{
		"gpt-4": false, "gpt-4-0613": false, "openai/gpt-4": false, "gpt-3.5-turbo-0125": false,
		"gpt-4.1": true, "gpt-4-1": true, "gpt-4.1-2025-04-14": true, "gpt-4o": true, "gpt-4o-2024-08-06": true, "gpt-4-turbo": true, "gpt-4-1106-vision-preview": true, "gpt-4.5": true, "gpt-4-32k": true,
		"o3-mini": true, "o3": true,
		"openai/gpt-oss-120b": false, "gpt-oss:20b": false, "gpt-oss-next": true,
		"kimi-k2.5":      true,
		"deepseek-flash": true, "deepseek-v4-pro": false, "deepseek/deepseek-v4-pro": false, "deepseek-v4-flash": true, "claude-sonnet-4-5": true, "us.anthropic.claude-opus-4-5": true,
		"my-own-model": true, "": true,
	} {
		for _, kind := range []step.PartKind{step.PartImage, step.PartDocument} {
			if got := Takes(model)(kind); got != want {
				t.Errorf("Takes(%q)(%s) = %v, want %v", model, kind, got, want)
			}
		}
		if !Takes(model)(step.PartText) {
			t.Errorf("%q takes no text", model)
		}
	}
}
