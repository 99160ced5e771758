package openai

import "github.com/deckhand-dev/deckhand/runner/model"

// The providers that this package speaks to, as Model.spec.provider names them.
const (
	ProviderOpenAI           = "OpenAI"
	ProviderAzure            = "Azure"
	ProviderOpenRouter       = "OpenRouter"
	ProviderOllama           = "Ollama"
	ProviderDeepSeek         = "DeepSeek"
	ProviderKimi             = "Kimi"
	ProviderOpenAICompatible = "OpenAICompatible"
)

// dialects are the providers. A provider more is a row more.
var dialects = map[string]dialect{
	ProviderOpenAI: {
		endpoint:   "https://api.openai.com/v1",
		maxTokens:  "max_completion_tokens",
		reasoning:  byModel[levels]{"": efforts},
		sampling:   thinkersOfOpenAI,
		cacheKey:   "prompt_cache_key",
		echo:       echoNothing,
		brokenArgs: argsVerbatim,
	},
	// Azure refuses fields that it does not know; versions of the API with a date
	// do not know a cache key.
	ProviderAzure: {
		place:        placeVersionOne,
		apiKeyHeader: true,
		dated:        &azureDated,
		maxTokens:    "max_completion_tokens",
		reasoning:    byModel[levels]{"": efforts},
		sampling:     thinkersOfOpenAI,
		cacheKey:     "prompt_cache_key",
		echo:         echoNothing,
		brokenArgs:   argsEmpty,
		inline:       true, // open models behind it
	},
	ProviderOpenRouter: {
		endpoint:  "https://openrouter.ai/api/v1",
		always:    `{"usage":{"include":true}}`, // or no cost comes back
		maxTokens: "max_tokens",
		reasoning: byModel[levels]{"": {
			model.ReasoningOff:    `{"reasoning":{"enabled":false}}`,
			model.ReasoningLow:    `{"reasoning":{"effort":"low"}}`,
			model.ReasoningMedium: `{"reasoning":{"effort":"medium"}}`,
			model.ReasoningHigh:   `{"reasoning":{"effort":"high"}}`,
		}},
		marked:     byModel[bool]{"anthropic/": true},
		echo:       echoReceived,
		brokenArgs: argsEmpty,
	},
	ProviderOllama: {
		endpoint:   "http://ollama:11434/v1",
		maxTokens:  "max_tokens",
		reasoning:  byModel[levels]{"": efforts},
		echo:       echoReceived,
		brokenArgs: argsEmpty,
		inline:     true,
	},
	// DeepSeek thinks unless it is told not to, and then takes no sampling. Its
	// default effort is high; it has none between low and that.
	ProviderDeepSeek: {
		endpoint:  "https://api.deepseek.com/v1",
		maxTokens: "max_tokens",
		reasoning: byModel[levels]{"": {
			model.ReasoningOff:    `{"thinking":{"type":"disabled"}}`,
			model.ReasoningLow:    `{"thinking":{"type":"enabled"},"reasoning_effort":"low"}`,
			model.ReasoningMedium: `{"thinking":{"type":"enabled"},"reasoning_effort":"high"}`,
			model.ReasoningHigh:   `{"thinking":{"type":"enabled"},"reasoning_effort":"max"}`,
		}},
		sampling:   byModel[sampling]{"": samplingUnlessThinking, "deepseek-chat": samplingSent},
		echo:       echoDemanded,
		brokenArgs: argsEmpty,
	},
	// Kimi takes an empty reasoning_content for a missing one, and refuses both.
	// Its thinking models draw tokens as they like and refuse to be told.
	ProviderKimi: {
		endpoint:  "https://api.moonshot.ai/v1",
		maxTokens: "max_completion_tokens",
		reasoning: byModel[levels]{
			"":          unasked,
			"kimi-k2.5": onOrOff,
			"kimi-k2.6": onOrOff,
			"kimi-k3": { // cannot but think
				model.ReasoningOff:    `{"reasoning_effort":"low"}`,
				model.ReasoningLow:    `{"reasoning_effort":"low"}`,
				model.ReasoningMedium: `{"reasoning_effort":"high"}`,
				model.ReasoningHigh:   `{"reasoning_effort":"max"}`,
			},
		},
		sampling: byModel[sampling]{
			"": samplingSent, "kimi-": samplingFixed,
			"kimi-k2-0": samplingSent, "kimi-k2-turbo": samplingSent, "kimi-latest": samplingSent,
		},
		echo:       echoDemanded,
		blank:      " ",
		brokenArgs: argsEmpty,
	},
	ProviderOpenAICompatible: {
		maxTokens:  "max_tokens",
		reasoning:  byModel[levels]{"": efforts},
		echo:       echoReceived,
		brokenArgs: argsEmpty,
		inline:     true,
	},
}

var azureDated = dialect{
	place:        placeDeployment,
	apiKeyHeader: true,
	maxTokens:    "max_completion_tokens",
	reasoning:    byModel[levels]{"": efforts},
	sampling:     thinkersOfOpenAI,
	echo:         echoNothing,
	brokenArgs:   argsEmpty,
	inline:       true,
}

// thinkersOfOpenAI are its models that think, which refuse to be told how to draw
// tokens; the later ones only while they think.
var thinkersOfOpenAI = byModel[sampling]{
	"": samplingSent, "o1": samplingFixed, "o3": samplingFixed, "o4": samplingFixed,
	"gpt-5": samplingFixed, "gpt-5.": samplingUnlessThinking, "gpt-5-chat": samplingSent,
}

// efforts is how OpenAI, and most who imitate it, are told how hard to think.
var efforts = levels{
	model.ReasoningOff:    `{"reasoning_effort":"none"}`,
	model.ReasoningLow:    `{"reasoning_effort":"low"}`,
	model.ReasoningMedium: `{"reasoning_effort":"medium"}`,
	model.ReasoningHigh:   `{"reasoning_effort":"high"}`,
}

// onOrOff is for who thinks, or does not.
var onOrOff = levels{
	model.ReasoningOff:    `{"thinking":{"type":"disabled"}}`,
	model.ReasoningLow:    `{"thinking":{"type":"enabled"}}`,
	model.ReasoningMedium: `{"thinking":{"type":"enabled"}}`,
	model.ReasoningHigh:   `{"thinking":{"type":"enabled"}}`,
}

// unasked is for who always thinks, or never does.
var unasked = levels{
	model.ReasoningOff: `{}`, model.ReasoningLow: `{}`, model.ReasoningMedium: `{}`, model.ReasoningHigh: `{}`,
}
