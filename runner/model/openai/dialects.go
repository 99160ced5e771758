package openai

import (
	"github.com/deckhand-dev/deckhand/runner/internal/model/httpapi"
	"github.com/deckhand-dev/deckhand/runner/model"
)

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

// dialects holds the dialect of each provider.
var dialects = map[string]dialect{
	ProviderOpenAI: {
		endpoint:    "https://api.openai.com/v1",
		maxTokens:   "max_completion_tokens",
		reasoning:   byModel[levels]{"": efforts},
		sampling:    openAISampling,
		cacheKey:    "prompt_cache_key",
		echo:        echoNothing,
		invalidArgs: argsVerbatim,

		hasResponses: true,
	},
	// Azure refuses fields that it does not know; versions of the API with a date
	// do not know a cache key.
	ProviderAzure: {
		chatPath:       chatPathVersionOne,
		apiKeyHeader:   true,
		withAPIVersion: &azureDated,
		maxTokens:      "max_completion_tokens",
		reasoning:      byModel[levels]{"": efforts},
		sampling:       openAISampling,
		cacheKey:       "prompt_cache_key",
		echo:           echoReceived, // open models behind it
		invalidArgs:    argsEmpty,
		thinkTags:      true,
		files:          azureFiles,
		hasResponses:   true,
	},
	ProviderOpenRouter: {
		endpoint:  "https://openrouter.ai/api/v1",
		extraBody: `{"usage":{"include":true}}`, // without it no cost is reported
		maxTokens: "max_tokens",
		reasoning: byModel[levels]{"": {
			model.ReasoningOff:    `{"reasoning":{"enabled":false}}`,
			model.ReasoningLow:    `{"reasoning":{"effort":"low"}}`,
			model.ReasoningMedium: `{"reasoning":{"effort":"medium"}}`,
			model.ReasoningHigh:   `{"reasoning":{"effort":"high"}}`,
		}},
		marked:      byModel[bool]{"anthropic/": true},
		echo:        echoReceived,
		invalidArgs: argsEmpty,
	},
	ProviderOllama: {
		endpoint:    "http://ollama:11434/v1",
		idle:        httpapi.IdleOwnServer,
		maxTokens:   "max_tokens",
		reasoning:   byModel[levels]{"": efforts},
		echo:        echoReceived,
		invalidArgs: argsEmpty,
		thinkTags:   true,
		// The server loaded or unloaded the model and generated nothing.
		finishReasons: []httpapi.FinishReason{{Reason: "load", Meaning: httpapi.FinishBrokenOff}, {Reason: "unload", Meaning: httpapi.FinishBrokenOff}},
	},
	// DeepSeek thinks by default, and accepts no sampling while it thinks. Its default
	// effort is high; it has none between low and high.
	ProviderDeepSeek: {
		endpoint:  "https://api.deepseek.com/v1",
		maxTokens: "max_tokens",
		reasoning: byModel[levels]{"": {
			model.ReasoningOff:    `{"thinking":{"type":"disabled"}}`,
			model.ReasoningLow:    `{"thinking":{"type":"enabled"},"reasoning_effort":"low"}`,
			model.ReasoningMedium: `{"thinking":{"type":"enabled"},"reasoning_effort":"high"}`,
			model.ReasoningHigh:   `{"thinking":{"type":"enabled"},"reasoning_effort":"max"}`,
		}},
		sampling:    byModel[sampling]{"": samplingUnlessThinking, "deepseek-chat": samplingSent},
		echo:        echoDemanded,
		invalidArgs: argsEmpty,
	},
	// Kimi treats an empty reasoning_content as a missing one, and refuses both. Its
	// thinking models refuse any sampling.
	ProviderKimi: {
		endpoint:  "https://api.moonshot.ai/v1",
		maxTokens: "max_completion_tokens",
		reasoning: byModel[levels]{
			"":          fixedThinking,
			"kimi-k2.5": toggledThinking,
			"kimi-k2.6": toggledThinking,
			"kimi-k3": { // always thinks
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
		echo:           echoDemanded,
		emptyReasoning: " ",
		invalidArgs:    argsEmpty,
	},
	ProviderOpenAICompatible: {
		idle:         httpapi.IdleOwnServer,
		maxTokens:    "max_tokens",
		reasoning:    byModel[levels]{"": efforts},
		echo:         echoReceived,
		invalidArgs:  argsEmpty,
		thinkTags:    true,
		hasResponses: true,
	},
}

var azureDated = dialect{
	chatPath:     chatPathDeployment,
	apiKeyHeader: true,
	maxTokens:    "max_completion_tokens",
	reasoning:    byModel[levels]{"": efforts},
	sampling:     openAISampling,
	echo:         echoNothing,
	invalidArgs:  argsEmpty,
	thinkTags:    true,
	files:        azureFiles,
	hasResponses: true,
}

// azureFiles are the limits of Azure, on 2026-11-27.
// https://learn.microsoft.com/en-us/azure/ai-foundry/openai/how-to/gpt-with-vision
var azureFiles = httpapi.FileLimits{Files: 10}

// openAISampling holds the models of OpenAI that think: they refuse sampling, the later
// ones only while they think.
var openAISampling = byModel[sampling]{
	"": samplingSent, "o1": samplingFixed, "o3": samplingFixed, "o4": samplingFixed,
	"gpt-5": samplingFixed, "gpt-5.": samplingUnlessThinking, "gpt-5-chat": samplingSent,
}

// efforts are the levels of OpenAI and of most compatible providers.
var efforts = levels{
	model.ReasoningOff:    `{"reasoning_effort":"none"}`,
	model.ReasoningLow:    `{"reasoning_effort":"low"}`,
	model.ReasoningMedium: `{"reasoning_effort":"medium"}`,
	model.ReasoningHigh:   `{"reasoning_effort":"high"}`,
}

// toggledThinking is for models whose thinking is either on or off.
var toggledThinking = levels{
	model.ReasoningOff:    `{"thinking":{"type":"disabled"}}`,
	model.ReasoningLow:    `{"thinking":{"type":"enabled"}}`,
	model.ReasoningMedium: `{"thinking":{"type":"enabled"}}`,
	model.ReasoningHigh:   `{"thinking":{"type":"enabled"}}`,
}

// fixedThinking is for models that always think, or never do.
var fixedThinking = levels{
	model.ReasoningOff: `{}`, model.ReasoningLow: `{}`, model.ReasoningMedium: `{}`, model.ReasoningHigh: `{}`,
}
