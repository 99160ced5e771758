package modelfacts

// The levels of reasoning. A model that always reasons has no Off.
var (
	allLevels = []string{"Off", "Low", "Medium", "High"}
	noOff     = []string{"Low", "Medium", "High"}
	onOff     = []string{"Off", "High"}
	noLevels  = []string{}
)

// The days on which the documentation below was read.
const (
	read      = "2026-11-27"
	readSizes = "2026-11-28"
)

// Microsoft documents the models of OpenAI and Anthropic as their makers serve them, in one table each.
const (
	foundry       = "https://github.com/MicrosoftDocs/azure-ai-docs/blob/main/articles/foundry/"
	foundryOpenAI = foundry + "openai/includes/models-azure-direct-openai.md"
	foundryClaude = foundry + "foundry-models/includes/concepts-claude-models-content.md"
	foundryOthers = foundry + "foundry-models/includes/models-azure-direct-others.md"
	mistralModels = "https://github.com/mistralai/platform-docs-public/tree/main/src/schema/models/models"
	deepSeekR1    = "https://github.com/deepseek-ai/DeepSeek-R1/blob/main/README.md"
	llamaModels   = "https://github.com/meta-llama/llama-models/blob/main/README.md"
	qwen3         = "https://github.com/QwenLM/Qwen3/blob/main/README.md"
	geminiPro     = "https://docs.cloud.google.com/gemini-enterprise-agent-platform/models/gemini/2-5-pro"
	gemmaBlog     = "https://huggingface.co/blog/gemma3"
)

const (
	claudeModels     = "https://platform.claude.com/docs/en/models"
	claudePDF        = "https://platform.claude.com/docs/en/build-with-claude/pdf-support"
	claudeAdaptive   = "https://docs.aws.amazon.com/bedrock/latest/userguide/claude-messages-adaptive-thinking.html"
	openAIFiles      = "https://developers.openai.com/api/docs/guides/file-inputs"
	openAIEffort     = "https://learn.microsoft.com/en-us/javascript/api/@azure/ai-projects/reasoningeffort"
	deepSeekModels   = "https://api-docs.deepseek.com/zh-cn/quick_start/pricing/"
	deepSeekThinking = "https://api-docs.deepseek.com/guides/thinking_mode"
	grokReasoning    = "https://docs.x.ai/docs/guides/reasoning"
)

// rows are the families of models. Facts without documentation of the provider are left out.
var rows = []Row{
	// Anthropic.
	{
		Provider: "anthropic", Families: []string{"claude-fable-5-1", "claude-opus-5-5"}, MaxOutput: 128_000, Images: Yes, PDF: Yes, Levels: noOff,
		Sources: []string{claudeModels, claudePDF}, Date: read,
	},
	{
		Provider: "anthropic", Families: []string{"claude-sonnet-5-5", "claude-haiku-5-5"}, MaxOutput: 128_000, Images: Yes, PDF: Yes, Levels: allLevels,
		Sources: []string{"https://platform.claude.com/docs/about-claude/models/overview", claudePDF}, Date: read,
	},
	{Provider: "anthropic", Families: []string{"claude-fable-5"}, MaxOutput: 128_000, Levels: noOff, Sources: []string{claudeAdaptive, foundryClaude}, Date: readSizes},
	{
		Provider: "anthropic", Families: []string{"claude-opus-5", "claude-opus-4-8"}, MaxOutput: 128_000, Images: Yes, PDF: Yes, Levels: allLevels,
		Sources: []string{"https://platform.claude.com/docs/en/models/opus-5/migration-guide"}, Date: read,
	},
	{
		Provider: "anthropic", Families: []string{"claude-sonnet-5"}, MaxOutput: 128_000, Images: Yes, PDF: Yes, Levels: allLevels,
		Refused: []string{"temperature", "top_p", "top_k"},
		Sources: []string{"https://platform.claude.com/docs/zh-CN/models/sonnet-5/overview", claudePDF}, Date: read,
	},
	{
		Provider: "anthropic", Families: []string{"claude-haiku-4-5"}, MaxOutput: 64_000, Images: Yes, PDF: Yes, Levels: allLevels,
		Sources: []string{claudeModels, claudePDF}, Date: read,
	},
	{
		Provider: "anthropic", Families: []string{"claude-opus-4-6", "claude-sonnet-4-6"}, MaxOutput: 128_000, Images: Yes, PDF: Yes, Levels: allLevels,
		Sources: []string{"https://platform.claude.com/docs/en/about-claude/models/overview.md", "https://platform.claude.com/docs/es/about-claude/models", claudePDF, foundryClaude}, Date: readSizes,
	},
	{
		Provider: "anthropic", Families: []string{"claude-sonnet-4-5"}, MaxOutput: 64_000, Images: Yes, PDF: Yes, Levels: allLevels,
		Sources: []string{"https://platform.claude.com/docs/en/about-claude/models/overview.md", "https://platform.claude.com/docs/es/about-claude/models", claudePDF, foundryClaude}, Date: readSizes,
	},
	{
		Provider: "anthropic", Families: []string{"claude-opus-4-5"}, MaxOutput: 64_000, Levels: allLevels, PDF: Yes,
		Sources: []string{"https://platform.claude.com/docs/en/about-claude/models/whats-new-claude-4-5", claudePDF, foundryClaude}, Date: readSizes,
	},
	{
		Provider: "anthropic", Families: []string{"claude-opus-4-7"}, MaxOutput: 128_000,
		Sources: []string{foundryClaude, "https://docs.aws.amazon.com/bedrock/latest/userguide/model-card-anthropic-claude-opus-4-7.md"}, Date: readSizes,
	},
	{
		Provider: "anthropic", Families: []string{"claude-3-5-haiku"}, MaxOutput: 8_192,
		Sources: []string{"https://docs.aws.amazon.com/es_es/bedrock/latest/userguide/model-card-anthropic-claude-3-5-haiku.html"}, Date: readSizes,
	},
	{Provider: "anthropic", Families: []string{"claude-*"}, Window: 200_000, Sources: []string{foundryClaude}, Date: readSizes},

	// OpenAI. All models before gpt-5.1 refuse to turn reasoning off; gpt-5-pro has one level.
	{
		Provider: "openai", Families: []string{"gpt-5.4"}, MaxOutput: 128_000, Images: Yes, PDF: Yes, Levels: allLevels,
		Sources: []string{"https://developers.openai.com/api/docs/models/gpt-5.4", openAIFiles}, Date: read,
	},
	{
		Provider: "openai", Families: []string{"gpt-5.1"}, MaxOutput: 128_000, Images: Yes, PDF: Yes, Levels: allLevels,
		Sources: []string{openAIEffort, openAIFiles, foundryOpenAI}, Date: readSizes,
	},
	{
		Provider: "openai", Families: []string{"gpt-5", "gpt-5-mini", "gpt-5-nano"}, MaxOutput: 128_000, Images: Yes, PDF: Yes, Levels: noOff,
		Sources: []string{openAIEffort, openAIFiles, foundryOpenAI}, Date: readSizes,
	},
	{Provider: "openai", Families: []string{"o1", "o3", "o3-mini", "o4-mini"}, MaxOutput: 100_000, Levels: noOff, Sources: []string{openAIEffort, foundryOpenAI}, Date: readSizes},
	{
		Provider: "openai", Families: []string{"gpt-5-pro"}, MaxOutput: 128_000, Images: Yes, PDF: Yes, Levels: []string{"High"},
		Sources: []string{openAIEffort, openAIFiles, foundryOpenAI}, Date: readSizes,
	},
	{
		Provider: "openai", Families: []string{"gpt-5.2", "gpt-5.5"}, MaxOutput: 128_000, Images: Yes, PDF: Yes,
		Sources: []string{openAIFiles, foundryOpenAI}, Date: readSizes,
	},
	{
		Provider: "openai", Families: []string{"gpt-5.6", "gpt-5.6-sol", "gpt-5.6-terra", "gpt-5.6-luna"}, Images: Yes, PDF: Yes,
		Sources: []string{openAIFiles}, Date: read,
	},
	{
		Provider: "openai", Families: []string{"gpt-4o", "gpt-4o-mini"}, MaxOutput: 16_384, Images: Yes, PDF: Yes,
		Sources: []string{openAIFiles, foundryOpenAI}, Date: readSizes,
	},
	{
		Provider: "openai", Families: []string{"gpt-4.1", "gpt-4.1-mini", "gpt-4.1-nano"}, MaxOutput: 32_768, Images: Yes, PDF: Yes,
		Sources: []string{openAIFiles, foundryOpenAI}, Date: readSizes,
	},
	{
		Provider: "openai", Families: []string{"gpt-5-chat", "gpt-5.1-chat", "gpt-5.2-chat", "gpt-5.3-chat", "gpt-chat-latest"}, Window: 128_000, MaxOutput: 16_384,
		Sources: []string{foundryOpenAI}, Date: readSizes,
	},
	{Provider: "openai", Families: []string{"o1-mini"}, MaxOutput: 65_536, Sources: []string{foundryOpenAI}, Date: readSizes},
	{Provider: "openai", Families: []string{"o3-pro", "codex-mini"}, Window: 200_000, MaxOutput: 100_000, Sources: []string{foundryOpenAI}, Date: readSizes},
	{Provider: "openai", Families: []string{"gpt-4-turbo"}, MaxOutput: 4_096, Sources: []string{foundryOpenAI}, Date: readSizes},
	{
		Provider: "openai", Families: []string{"gpt-3.5-turbo", "gpt-35-turbo"}, Window: 16_385, MaxOutput: 4_096, Images: No,
		Sources: []string{"https://developers.openai.com/api/docs/models/gpt-3.5-turbo.md", "https://github.com/MicrosoftDocs/azure-ai-docs/pull/544/files"}, Date: readSizes,
	},
	{Provider: "openai", Families: []string{"gpt-4o*"}, Window: 128_000, MaxOutput: 16_384, Sources: []string{foundryOpenAI}, Date: readSizes},
	{Provider: "openai", Families: []string{"gpt-4.1*"}, Window: 1_047_576, MaxOutput: 32_768, Sources: []string{foundryOpenAI}, Date: readSizes},
	{Provider: "openai", Families: []string{"gpt-5*"}, Window: 400_000, MaxOutput: 128_000, Sources: []string{foundryOpenAI}, Date: readSizes},
	{
		Provider: "openai", Families: []string{"gpt-6*"}, Window: 1_050_000, MaxOutput: 128_000,
		Sources: []string{"https://vercel.com/ai-gateway/models/openai/gpt-6-sol.md", "https://vercel.com/ai-gateway/models/gpt-6.1-sol.md", "https://vercel.com/ai-gateway/models/gpt-6.2-sol.md"}, Date: readSizes,
	},
	{Provider: "openai", Families: []string{"gpt-4"}, Images: No, Sources: []string{"https://developers.openai.com/api/docs/models/gpt-4.md"}, Date: read},
	{
		Provider: "openai", Families: []string{"gpt-oss-120b", "gpt-oss-20b"}, MaxOutput: 131_072, Images: No,
		Sources: []string{"https://developers.openai.com/api/docs/models/gpt-oss-120b.md", "https://developers.openai.com/api/docs/models/gpt-oss-20b.md", foundryOpenAI}, Date: readSizes,
	},
	{Provider: "openai", Families: []string{"gpt-oss*"}, Window: 131_072, MaxOutput: 131_072, Sources: []string{foundryOpenAI}, Date: readSizes},

	// Google, at its OpenAI-compatible endpoint too.
	{
		Provider: "google", Families: []string{"gemini-2.0-flash"}, MaxOutput: 8_192, Images: Yes,
		Sources: []string{"https://ai.google.dev/gemini-api/docs/models/gemini-2.0-flash"}, Date: read,
	},
	{
		Provider: "google", Families: []string{"gemini-2.0-flash-lite"}, MaxOutput: 8_192,
		Sources: []string{"https://ai.google.dev/gemini-api/docs/models/gemini-2.0-flash-lite"}, Date: readSizes,
	},
	{
		Provider: "google", Families: []string{"gemini-2.5-pro"}, Images: Yes, PDF: Yes,
		Sources: []string{geminiPro}, Date: read,
	},
	{
		Provider: "google", Families: []string{"gemini-3-flash-preview"}, MaxOutput: 65_536, Images: Yes, PDF: Yes,
		Sources: []string{"https://docs.cloud.google.com/gemini-enterprise-agent-platform/models/gemini/3-flash"}, Date: read,
	},
	{
		Provider: "google", Families: []string{"gemini-3.5-flash"}, MaxOutput: 65_536, Images: Yes, PDF: Yes,
		Sources: []string{"https://ai.google.dev/gemini-api/docs/models/gemini-3.5-flash"}, Date: read,
	},
	{
		Provider: "google", Families: []string{"gemini-3.7-flash"}, MaxOutput: 65_536, Images: Yes, PDF: Yes, Levels: noOff,
		Sources: []string{"https://ai.google.dev/gemini-api/docs/models/gemini-3.7-flash"}, Date: read,
	},

	{Provider: "google", Families: []string{"gemini-*"}, Window: 1_048_576, MaxOutput: 65_535, Sources: []string{geminiPro}, Date: readSizes},
	{Provider: "google", Families: []string{"gemma*"}, Window: 8_192, Sources: []string{gemmaBlog}, Date: readSizes},
	{Provider: "google", Families: []string{"gemma-3-1b*", "gemma3:1b*"}, Window: 32_768, Sources: []string{gemmaBlog}, Date: readSizes},
	{Provider: "google", Families: []string{"gemma-3*", "gemma3*"}, Window: 131_072, Sources: []string{gemmaBlog}, Date: readSizes},
	{Provider: "google", Families: []string{"gemma-4*", "gemma4*"}, Window: 131_072, Sources: []string{"https://ai.google.dev/gemma/docs/core"}, Date: readSizes},

	// DeepSeek. It takes sampling without effect while it thinks, so it refuses nothing.
	{
		Provider: "deepseek", Families: []string{"deepseek-flash", "deepseek-v4-flash"}, Window: 1_000_000, MaxOutput: 384_000, Images: Yes, Levels: allLevels,
		Sources: []string{deepSeekModels, deepSeekThinking}, Date: read,
	},
	{
		Provider: "deepseek", Families: []string{"deepseek-v4-pro"}, MaxOutput: 384_000, Images: No, Levels: allLevels,
		Sources: []string{deepSeekModels, deepSeekThinking}, Date: read,
	},

	{
		Provider: "deepseek", Families: []string{"deepseek-chat", "deepseek-reasoner"}, Instead: "deepseek-flash",
		Sources: []string{"https://api-docs.deepseek.com/"}, Date: readSizes,
	},
	{Provider: "deepseek", Families: []string{"deepseek-v3.2"}, MaxOutput: 128_000, Sources: []string{foundryOthers}, Date: readSizes},
	{Provider: "deepseek", Families: []string{"deepseek*"}, Window: 128_000, Sources: []string{deepSeekR1, foundryOthers}, Date: readSizes},
	{Provider: "deepseek", Families: []string{"deepseek-r1*"}, Window: 128_000, MaxOutput: 32_768, Sources: []string{deepSeekR1}, Date: readSizes},
	{Provider: "deepseek", Families: []string{"deepseek-v4*"}, Window: 1_000_000, MaxOutput: 384_000, Sources: []string{foundryOthers}, Date: readSizes},

	// Kimi.
	{
		Provider: "moonshotai", Families: []string{"kimi-k2.5"}, MaxOutput: 262_144, Images: Yes, Levels: allLevels,
		Refused: []string{"temperature", "top_p", "n", "presence_penalty", "frequency_penalty"},
		Sources: []string{"https://platform.kimi.ai/docs/api/models-overview", "https://platform.moonshot.ai/docs/intro", foundryOthers}, Date: readSizes,
	},
	{
		Provider: "moonshotai", Families: []string{"kimi-k2.6"}, MaxOutput: 262_144, Levels: allLevels,
		Refused: []string{"temperature", "top_p", "n", "presence_penalty", "frequency_penalty"},
		Sources: []string{"https://platform.kimi.ai/docs/api/models-overview", foundryOthers}, Date: readSizes,
	},
	{Provider: "moonshotai", Families: []string{"kimi-k2.7-code"}, MaxOutput: 262_144, Sources: []string{foundryOthers}, Date: readSizes},
	{Provider: "moonshotai", Families: []string{"kimi-k2*"}, Window: 131_072, Sources: []string{"https://github.com/MoonshotAI/Kimi-K2/blob/main/README.md"}, Date: readSizes},
	{
		Provider: "moonshotai", Families: []string{"kimi-k2-0905*", "kimi-k2-instruct-0905*"}, Window: 262_144,
		Sources: []string{"https://novita.ai/zh/models/model-detail/moonshotai-kimi-k2-0905"}, Date: readSizes,
	},

	// Mistral.
	{
		Provider: "mistral", Families: []string{"mistral-small-latest"}, Images: Yes, Levels: onOff,
		Sources: []string{"https://docs.mistral.ai/studio-api/conversations/vision", "https://docs.mistral.ai/capabilities/reasoning/"}, Date: read,
	},
	{
		Provider: "mistral", Families: []string{"mistral-medium-3-5"}, Levels: onOff,
		Sources: []string{"https://docs.mistral.ai/capabilities/reasoning/"}, Date: read,
	},
	{
		Provider: "mistral", Families: []string{"magistral-small-latest", "magistral-medium-latest"}, Levels: noLevels,
		Sources: []string{"https://docs.mistral.ai/capabilities/reasoning/native"}, Date: read,
	},
	{
		Provider: "mistral", Families: []string{"mistral-large-2512", "mistral-medium-2508", "mistral-small-2506", "ministral-14b-2512", "ministral-8b-2512", "ministral-3b-2512"}, Images: Yes,
		Sources: []string{"https://docs.mistral.ai/studio-api/conversations/vision"}, Date: read,
	},

	{Provider: "mistral", Families: []string{"codestral"}, Window: 128_000, Sources: []string{mistralModels}, Date: readSizes}, // the list has 256,000
	{Provider: "mistral", Families: []string{"mistral-large-4", "mistral-large-4-0"}, Window: 1_000_000, Sources: []string{mistralModels}, Date: readSizes},
	{
		Provider: "mistral", Families: []string{
			"mistral-large*", "mistral-medium*", "mistral-small*", "mistral-nemo*", "open-mistral-nemo*", "magistral*", "ministral*", "pixtral*", "devstral*", "codestral*",
		}, Window: 128_000, Sources: []string{mistralModels}, Date: readSizes,
	},
	{Provider: "mistral", Families: []string{"mistral*", "open-mistral*", "mixtral*", "open-mixtral*"}, Window: 32_000, Sources: []string{mistralModels}, Date: readSizes},
	{Provider: "mistral", Families: []string{"mixtral-8x22b*", "open-mixtral-8x22b*"}, Window: 64_000, Sources: []string{mistralModels}, Date: readSizes},

	// xAI.
	{
		Provider: "x-ai", Families: []string{"grok-4", "grok-4-fast-reasoning"}, Levels: noLevels,
		Refused: []string{"presence_penalty", "frequency_penalty", "stop"}, Sources: []string{grokReasoning}, Date: read,
	},
	{Provider: "x-ai", Families: []string{"grok-3"}, Levels: noLevels, Sources: []string{grokReasoning}, Date: read},
	{
		Provider: "x-ai", Families: []string{"grok-3-mini"}, Levels: []string{"Low", "High"},
		Refused: []string{"presence_penalty", "frequency_penalty", "stop"}, Sources: []string{grokReasoning}, Date: read,
	},
	{
		Provider: "x-ai", Families: []string{"grok-4.20-reasoning"}, Images: Yes,
		Sources: []string{"https://docs.cloud.google.com/gemini-enterprise-agent-platform/models/partner-models/grok/grok-4-20.md.txt"}, Date: read,
	},

	// Groq.
	{
		Provider: "groq", Families: []string{"llama-3.2-90b-vision-preview", "llama-3.2-11b-vision-preview"}, Images: Yes,
		Sources: []string{"https://console.groq.com/docs/vision"}, Date: read,
	},

	// Makers of models that others serve. A server may have a smaller window: Ollama uses its own
	// OLLAMA_CONTEXT_LENGTH, which a Model should repeat as contextWindow.
	{Provider: "meta", Families: []string{"llama*"}, Window: 8_192, Sources: []string{llamaModels}, Date: readSizes},
	{Provider: "meta", Families: []string{"llama2*", "llama-2*"}, Window: 4_096, Sources: []string{llamaModels}, Date: readSizes},
	{
		Provider: "meta", Families: []string{"llama3.1*", "llama-3.1*", "meta-llama-3.1*", "llama3.2*", "llama-3.2*"}, Window: 128_000,
		Sources: []string{llamaModels}, Date: readSizes,
	},
	{Provider: "meta", Families: []string{"llama3.3*", "llama-3.3*"}, Window: 128_000, Sources: []string{foundryOthers}, Date: readSizes},
	{Provider: "meta", Families: []string{"llama4*", "llama-4*"}, Window: 128_000, Sources: []string{foundryOthers}, Date: readSizes}, // it was made for 1M, and hosts serve less
	{Provider: "alibaba", Families: []string{"qwen*"}, Window: 32_768, Sources: []string{"https://github.com/QwenLM/Qwen2.5/blob/main/README.md"}, Date: readSizes},
	{Provider: "alibaba", Families: []string{"qwen3*"}, Window: 40_960, MaxOutput: 32_768, Sources: []string{qwen3}, Date: readSizes},
	{
		Provider: "alibaba", Families: []string{
			"qwen3-235b-a22b-instruct-2507*", "qwen3-235b-a22b-thinking-2507*", "qwen3-30b-a3b-instruct-2507*", "qwen3-30b-a3b-thinking-2507*",
			"qwen3-4b-instruct-2507*", "qwen3-4b-thinking-2507*",
		}, Window: 262_144, Sources: []string{qwen3}, Date: readSizes,
	},
	{Provider: "alibaba", Families: []string{"qwen3-coder*"}, Window: 262_144, Sources: []string{"https://github.com/QwenLM/Qwen3-Coder/blob/main/README.md"}, Date: readSizes},
	{Provider: "alibaba", Families: []string{"qwen3-max*"}, Window: 262_144, MaxOutput: 65_536, Sources: []string{"https://vercel.com/ai-gateway/models/qwen3-max.md"}, Date: readSizes},
	{Provider: "zai", Families: []string{"glm-4*"}, Window: 128_000, Sources: []string{"https://github.com/zai-org/GLM-4.5/blob/main/README.md"}, Date: readSizes},
	{Provider: "zai", Families: []string{"glm-4.6*"}, Window: 202_000, Sources: []string{"https://fireworks.ai/models/fireworks/glm-4p6.md"}, Date: readSizes},
	{Provider: "zai", Families: []string{"glm-5.2*"}, Window: 1_000_000, Sources: []string{"https://github.com/zai-org/GLM-5/blob/main/README.md"}, Date: readSizes},
	{Provider: "zai", Families: []string{"glm-5.3*"}, Window: 1_000_000, MaxOutput: 128_000, Sources: []string{mistralModels}, Date: readSizes},
	{Provider: "minimax", Families: []string{"minimax-m2*"}, Window: 204_800, MaxOutput: 131_072, Sources: []string{"https://vercel.com/ai-gateway/models/minimax-m2.1-lightning/latency"}, Date: readSizes},
	{Provider: "cohere", Families: []string{"command-r*"}, Window: 128_000, Sources: []string{"https://docs.oracle.com/en-us/iaas/Content/generative-ai/cohere-command-r-08-2024.htm"}, Date: readSizes},
	{Provider: "cohere", Families: []string{"command-a*"}, Window: 131_072, MaxOutput: 8_182, Sources: []string{foundryOthers}, Date: readSizes},
	{Provider: "cohere", Families: []string{"command-a-reasoning*"}, Window: 256_000, MaxOutput: 32_000, Sources: []string{"https://docs.cohere.com/docs/command-a-reasoning"}, Date: readSizes},
}
