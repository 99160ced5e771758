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

// read is the day on which the documentation below was read.
const read = "2026-11-28"

// The documentation of the settings that depend on the model.
var (
	openAIEffort        = []string{"https://learn.microsoft.com/en-us/javascript/api/@azure/ai-projects/reasoningeffort"}
	openAIReasoning     = []string{"https://github.com/MicrosoftDocs/azure-ai-docs/blob/main/articles/foundry/openai/how-to/reasoning.md"}
	openAISamplingLater = []string{"https://github.com/vercel/ai/issues/10932"}
	openAISamplingChat  = []string{"https://github.com/BerriAI/litellm/issues/13781"}
	openRouterReasoning = []string{"https://openrouter.ai/docs/use-cases/reasoning-tokens"}
	openRouterCaching   = []string{"https://www.openrouter.ai/docs/guides/best-practices/prompt-caching"}
	ollamaFields        = []string{"https://github.com/ollama/ollama/blob/main/docs/api/openai-compatibility.mdx"}
	deepSeekThinking    = []string{"https://api-docs.deepseek.com/guides/thinking_mode.md"}
	deepSeekChat        = []string{"https://www.promptfoo.dev/docs/providers/deepseek/"}
	kimiThinking        = []string{"https://platform.moonshot.cn/docs/guide/use-kimi-k2-thinking-model", "https://platform.kimi.ai/docs/api/models-overview"}
	kimiFields          = []string{"https://java.agentscope.io/v2/en/integration/model/kimi"}
	kimiK2Fields        = []string{"https://raw.githubusercontent.com/api-evangelist/moonshot-ai/refs/heads/main/json-schema/moonshot-ai-kimi-k2-chat-request-schema.json"}
	kimiK3              = []string{"https://raw.githubusercontent.com/sst/models.dev/dev/providers/moonshotai/models/kimi-k3.toml"}
	recorded            = []string{httpapi.RecordedAnswers}
)

// dialects holds the dialect of each provider.
var dialects = map[string]dialect{
	ProviderOpenAI: {
		endpoint:    "https://api.openai.com/v1",
		maxTokens:   "max_completion_tokens",
		reasoning:   byModel[levels]{"": {efforts, openAIEffort, read}},
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
		reasoning:      byModel[levels]{"": {efforts, openAIEffort, read}},
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
		reasoning: byModel[levels]{"": {levels{
			model.ReasoningOff:    `{"reasoning":{"enabled":false}}`,
			model.ReasoningLow:    `{"reasoning":{"effort":"low"}}`,
			model.ReasoningMedium: `{"reasoning":{"effort":"medium"}}`,
			model.ReasoningHigh:   `{"reasoning":{"effort":"high"}}`,
		}, openRouterReasoning, read}},
		marked:      byModel[bool]{"anthropic/": {true, openRouterCaching, read}},
		echo:        echoReceived,
		invalidArgs: argsEmpty,
	},
	ProviderOllama: {
		endpoint:    "http://ollama:11434/v1",
		idle:        httpapi.IdleOwnServer,
		maxTokens:   "max_tokens",
		reasoning:   byModel[levels]{"": {efforts, ollamaFields, read}},
		echo:        echoReceived,
		invalidArgs: argsEmpty,
		thinkTags:   true,
		// The server loaded or unloaded the model and generated nothing.
		finishReasons: []httpapi.FinishReason{{Reason: "load", Meaning: httpapi.FinishBrokenOff}, {Reason: "unload", Meaning: httpapi.FinishBrokenOff}},
	},
	// DeepSeek reasons by default, and does not accept sampling while it does. Its default effort is high; there is
	// none between low and high.
	ProviderDeepSeek: {
		endpoint:  "https://api.deepseek.com/v1",
		maxTokens: "max_tokens",
		reasoning: byModel[levels]{"": {levels{
			model.ReasoningOff:    `{"thinking":{"type":"disabled"}}`,
			model.ReasoningLow:    `{"thinking":{"type":"enabled"},"reasoning_effort":"low"}`,
			model.ReasoningMedium: `{"thinking":{"type":"enabled"},"reasoning_effort":"high"}`,
			model.ReasoningHigh:   `{"thinking":{"type":"enabled"},"reasoning_effort":"max"}`,
		}, deepSeekThinking, read}},
		sampling:    byModel[sampling]{"": {samplingUnlessThinking, deepSeekThinking, read}, "deepseek-chat": {samplingSent, deepSeekChat, read}},
		echo:        echoDemanded,
		invalidArgs: argsEmpty,
	},
	// Kimi treats an empty reasoning_content as a missing one, and refuses both. Its
	// thinking models refuse any sampling.
	ProviderKimi: {
		endpoint:  "https://api.moonshot.ai/v1",
		maxTokens: "max_completion_tokens",
		reasoning: byModel[levels]{
			"":          {fixedThinking, kimiFields, read},
			"kimi-k2.5": {toggledThinking, kimiThinking, read},
			"kimi-k2.6": {toggledThinking, kimiFields, read},
			"kimi-k3": {levels{ // always thinks
				model.ReasoningOff:    `{"reasoning_effort":"low"}`,
				model.ReasoningLow:    `{"reasoning_effort":"low"}`,
				model.ReasoningMedium: `{"reasoning_effort":"high"}`,
				model.ReasoningHigh:   `{"reasoning_effort":"max"}`,
			}, kimiK3, read},
		},
		sampling: byModel[sampling]{
			"":              {samplingSent, kimiFields, read},
			"kimi-":         {samplingFixed, kimiFields, read},
			"kimi-k2-0":     {samplingSent, kimiK2Fields, read},
			"kimi-k2-turbo": {samplingSent, kimiK2Fields, read},
			"kimi-latest":   {samplingSent, []string{httpapi.NoSource}, read},
		},
		echo:           echoDemanded,
		emptyReasoning: " ",
		invalidArgs:    argsEmpty,
	},
	ProviderOpenAICompatible: {
		idle:         httpapi.IdleOwnServer,
		maxTokens:    "max_tokens",
		reasoning:    byModel[levels]{"": {efforts, recorded, read}},
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
	reasoning:    byModel[levels]{"": {efforts, openAIEffort, read}},
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

// openAISampling has the models of OpenAI that reason: they refuse sampling, the later ones only while they reason.
var openAISampling = byModel[sampling]{
	"":           {samplingSent, recorded, read},
	"o1":         {samplingFixed, openAIReasoning, read},
	"o3":         {samplingFixed, openAIReasoning, read},
	"o4":         {samplingFixed, openAIReasoning, read},
	"gpt-5":      {samplingFixed, openAIReasoning, read},
	"gpt-5.":     {samplingUnlessThinking, openAISamplingLater, read},
	"gpt-5-chat": {samplingSent, openAISamplingChat, read},
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
