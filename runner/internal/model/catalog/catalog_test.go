package catalog_test

import (
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/model/catalog"
)

func TestOf(t *testing.T) {
	type size struct{ window, maxOutput int64 }
	cases := map[string]struct {
		model string
		want  size
	}{
		"a model of Anthropic":                    {"claude-sonnet-4-5-20250929", size{200_000, 64_000}},
		"one with a large window":                 {"claude-sonnet-4-6", size{1_000_000, 128_000}},
		"an older one":                            {"claude-3-5-haiku-latest", size{200_000, 8_192}},
		"one that is not listed yet":              {"claude-zephyr-9", size{200_000, 25_000}},
		"another of a name that begins so":        {"claude-opus-4-5", size{200_000, 64_000}},
		"as OpenRouter writes it":                 {"anthropic/claude-sonnet-4.5", size{200_000, 64_000}},
		"with a variant of OpenRouter":            {"deepseek/deepseek-chat-v3.1:free", size{128_000, 16_000}},
		"as Bedrock writes it":                    {"us.anthropic.claude-haiku-4-5-20251001-v1:0", size{200_000, 64_000}},
		"a model of OpenAI":                       {"gpt-4o-mini", size{128_000, 16_384}},
		"a name that begins like another":         {"gpt-4.1-nano", size{1_000_000, 32_768}},
		"one of which the list has no name":       {"gpt-4.1-next", size{1_047_576, 32_768}},
		"GPT-4 itself is small":                   {"gpt-4-0613", size{8_192, 4_096}},
		"GPT-4 Turbo":                             {"gpt-4-turbo-2024-04-09", size{128_000, 4_096}},
		"GPT-5":                                   {"gpt-5-mini", size{400_000, 128_000}},
		"GPT-5 in a chat":                         {"gpt-5-chat-latest", size{128_000, 16_384}},
		"GPT-5.2 for code":                        {"gpt-5.2-codex", size{400_000, 128_000}},
		"GPT-5.6":                                 {"gpt-5.6-sol", size{1_050_000, 128_000}},
		"GPT-6":                                   {"openai/gpt-6.2-sol", size{1_050_000, 128_000}},
		"an o-model":                              {"o3-mini", size{200_000, 100_000}},
		"OpenAI's open weights":                   {"gpt-oss:20b", size{131_072, 32_768}},
		"a fine-tuned one":                        {"ft:gpt-4o-2024-08-06:acme::abc", size{128_000, 16_384}},
		"a deployment of Azure":                   {"gpt-35-turbo", size{16_385, 4_096}},
		"DeepSeek's":                              {"deepseek-flash", size{1_000_000, 384_000}},
		"DeepSeek's for 2025":                     {"deepseek-ai/DeepSeek-R1", size{128_000, 32_768}},
		"DeepSeek's with a large window":          {"deepseek-v4-pro", size{1_000_000, 384_000}},
		"Kimi":                                    {"kimi-k2.6", size{262_144, 65_536}},
		"Kimi at a host, in capitals":             {"moonshotai/Kimi-K2-Instruct-0905", size{262_144, 32_768}},
		"Gemini":                                  {"google/gemini-2.5-pro", size{1_048_576, 65_535}},
		"Llama with a tag of Ollama":              {"llama3.3:70b-instruct-q4_K_M", size{128_000, 16_000}},
		"Qwen, which was made for 32k":            {"qwen2.5-coder:32b", size{32_768, 4_096}},
		"Qwen with a large window":                {"Qwen/Qwen3-Coder-480B-A35B-Instruct", size{262_144, 32_768}},
		"Mistral":                                 {"mistral-large-latest", size{128_000, 16_000}},
		"Codestral, which the list has with 256k": {"codestral-2508", size{128_000, 16_000}},
		"what nobody knows":                       {"house-model", size{128_000, 8_000}},
		"nothing at all":                          {"", size{128_000, 8_000}},
		"a name that ends in a slash":             {"anthropic/", size{128_000, 8_000}},
		"a known name inside of another is no known one": {"not-gpt-4o", size{128_000, 8_000}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got size
			got.window, got.maxOutput = catalog.Of(tc.model)
			if got != tc.want {
				t.Errorf("Of(%s) = %d, want %d", tc.model, got, tc.want)
			}
		})
	}
}

// Whatever a name is, there is room to read and to write.
func FuzzOf(f *testing.F) {
	for _, name := range []string{"gpt-4o", "anthropic/claude-", "ft:", strings.Repeat("/", 9), "us.anthropic."} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, model string) {
		window, maxOutput := catalog.Of(model)
		if window <= 0 || maxOutput <= 0 || maxOutput > window/2 {
			t.Errorf("Of(%q) = %d, %d", model, window, maxOutput)
		}
	})
}
