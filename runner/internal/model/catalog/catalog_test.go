package catalog_test

import (
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/model/catalog"
)

func TestOf(t *testing.T) {
	type size struct{ window, maxOutput int64 }
	cases := map[string]struct {
		provider, model string
		want            size
	}{
		"a model of Anthropic":                      {"Anthropic", "claude-sonnet-4-5-20250929", size{200_000, 64_000}},
		"an older one":                              {"Anthropic", "claude-3-5-haiku-latest", size{200_000, 8_192}},
		"one that is not listed yet":                {"Anthropic", "claude-zephyr-9", size{200_000, 32_000}},
		"the longer prefix counts":                  {"Anthropic", "claude-opus-4-5", size{200_000, 64_000}},
		"as OpenRouter writes it":                   {"OpenRouter", "anthropic/claude-sonnet-4.5", size{200_000, 64_000}},
		"with a variant of OpenRouter":              {"OpenRouter", "deepseek/deepseek-chat-v3.1:free", size{128_000, 8_192}},
		"as Bedrock writes it":                      {"AnthropicCompatible", "us.anthropic.claude-3-7-sonnet-20250219-v1:0", size{200_000, 64_000}},
		"a model of OpenAI":                         {"OpenAI", "gpt-4o-mini", size{128_000, 16_384}},
		"a name that begins like another":           {"OpenAI", "gpt-4.1-nano", size{1_047_576, 32_768}},
		"GPT-4 itself is small":                     {"OpenAI", "gpt-4-0613", size{8_192, 4_096}},
		"GPT-5":                                     {"OpenAI", "gpt-5-mini", size{400_000, 128_000}},
		"GPT-5 in a chat":                           {"OpenAI", "gpt-5-chat-latest", size{128_000, 16_384}},
		"an o-model":                                {"OpenAI", "o3-mini", size{200_000, 100_000}},
		"a fine-tuned one":                          {"OpenAI", "ft:gpt-4o-2024-08-06:acme::abc", size{128_000, 16_384}},
		"a deployment of Azure":                     {"Azure", "gpt-35-turbo", size{16_385, 4_096}},
		"DeepSeek's, that thinks":                   {"DeepSeek", "deepseek-reasoner", size{128_000, 64_000}},
		"DeepSeek's with a large window":            {"DeepSeek", "deepseek-v4-pro", size{1_000_000, 384_000}},
		"a name that only its own provider uses so": {"DeepSeek", "deepseek-flash", size{1_000_000, 384_000}},
		"and that means nothing elsewhere":          {"Ollama", "deepseek-flash", size{128_000, 8_192}},
		"Kimi":                                      {"Kimi", "kimi-k2.6", size{262_144, 65_536}},
		"Kimi at a host, in capitals":               {"OpenAICompatible", "moonshotai/Kimi-K2-Instruct-0905", size{262_144, 32_768}},
		"Gemini":                                    {"OpenRouter", "google/gemini-2.5-pro", size{1_048_576, 65_536}},
		"Llama with a tag of Ollama":                {"Ollama", "llama3.3:70b-instruct-q4_K_M", size{131_072, 8_192}},
		"Qwen":                                      {"Ollama", "qwen2.5-coder:32b", size{131_072, 8_192}},
		"Mistral":                                   {"OpenAICompatible", "mistral-large-latest", size{131_072, 16_384}},
		"what nobody knows":                         {"OpenAICompatible", "house-model", size{128_000, 8_000}},
		"nothing at all":                            {"", "", size{128_000, 8_000}},
		"a name that ends in a slash":               {"OpenRouter", "anthropic/", size{128_000, 8_000}},
		"a known name inside of another is no known one": {"OpenAICompatible", "not-gpt-4o", size{128_000, 8_000}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got size
			got.window, got.maxOutput = catalog.Of(tc.provider, tc.model)
			if got != tc.want {
				t.Errorf("Of(%s, %s) = %d, want %d", tc.provider, tc.model, got, tc.want)
			}
		})
	}
}

// Whatever a name is, there is room to read and to write.
func FuzzOf(f *testing.F) {
	for _, name := range []string{"gpt-4o", "anthropic/claude-", "ft:", strings.Repeat("/", 9), "us.anthropic."} {
		f.Add("OpenAI", name)
	}
	f.Fuzz(func(t *testing.T, provider, model string) {
		window, maxOutput := catalog.Of(provider, model)
		if maxOutput <= 0 || maxOutput > window/2 {
			t.Errorf("Of(%q, %q) = %d, %d", provider, model, window, maxOutput)
		}
	})
}
