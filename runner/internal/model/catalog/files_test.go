package catalog_test

import (
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/model/catalog"
	"github.com/deckhand-dev/deckhand/runner/step"
)

func TestTakes(t *testing.T) {
	for model, want := range map[string]bool{
		"claude-sonnet-4-5": true, "us.anthropic.claude-opus-4-5": true, "claude-2.1": false,
		"gpt-4": false, "gpt-4-0613": false, "gpt-4o-mini": true, "gpt-4.1": true, "gpt-4-turbo": true, "gpt-5.4": true,
		"openai/gpt-oss-120b": false, "o3-mini": false, "o3": true,
		"deepseek-chat": false, "deepseek-ai/DeepSeek-V3": false, "deepseek-ai/deepseek-vl2": true,
		"kimi-k2-thinking": false, "kimi-k2.5": true, "moonshot-v1-8k": false, "moonshot-v1-8k-vision-preview": true,
		"meta-llama/Llama-3.2-11B-Vision-Instruct": true, "meta-llama/Llama-3.3-70B-Instruct": false,
		"zai-org/GLM-4.5V": true, "glm-4.6": false, "Qwen/Qwen2.5-VL-7B-Instruct": true,
		"my-own-model": true, "": true,
	} {
		for _, kind := range []step.PartKind{step.PartImage, step.PartDocument} {
			if got := catalog.Takes(model, kind); got != want {
				t.Errorf("Takes(%q, %s) = %v, want %v", model, kind, got, want)
			}
		}
		if !catalog.Takes(model, step.PartText) {
			t.Errorf("%q takes no text", model)
		}
	}
}
