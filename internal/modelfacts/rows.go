package modelfacts

// The levels of reasoning. A model that always reasons has no Off.
var (
	allLevels = []string{"Off", "Low", "Medium", "High"}
	noOff     = []string{"Low", "Medium", "High"}
	onOff     = []string{"Off", "High"}
	noLevels  = []string{}
)

// read is the day on which the documentation below was read.
const read = "2026-11-27"

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

// rows are the families of models. A fact that no documentation of the provider has is left out.
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
	{Provider: "anthropic", Families: []string{"claude-fable-5"}, Levels: noOff, Sources: []string{claudeAdaptive}, Date: read},
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
		Provider: "anthropic", Families: []string{"claude-opus-4-6", "claude-sonnet-4-5", "claude-sonnet-4-6"}, Images: Yes, PDF: Yes, Levels: allLevels,
		Sources: []string{"https://platform.claude.com/docs/en/about-claude/models/overview.md", "https://platform.claude.com/docs/es/about-claude/models", claudePDF}, Date: read,
	},
	{
		Provider: "anthropic", Families: []string{"claude-opus-4-5"}, Levels: allLevels, PDF: Yes,
		Sources: []string{"https://platform.claude.com/docs/en/about-claude/models/whats-new-claude-4-5", claudePDF}, Date: read,
	},

	// OpenAI. All models before gpt-5.1 refuse to turn reasoning off; gpt-5-pro has one level.
	{
		Provider: "openai", Families: []string{"gpt-5.4", "gpt-5-4"}, MaxOutput: 128_000, Images: Yes, PDF: Yes, Levels: allLevels,
		Sources: []string{"https://developers.openai.com/api/docs/models/gpt-5.4", openAIFiles}, Date: read,
	},
	{
		Provider: "openai", Families: []string{"gpt-5.1", "gpt-5-1"}, Images: Yes, PDF: Yes, Levels: allLevels,
		Sources: []string{openAIEffort, openAIFiles}, Date: read,
	},
	{
		Provider: "openai", Families: []string{"gpt-5", "gpt-5-mini", "gpt-5-nano"}, Images: Yes, PDF: Yes, Levels: noOff,
		Sources: []string{openAIEffort, openAIFiles}, Date: read,
	},
	{Provider: "openai", Families: []string{"o1", "o3", "o3-mini", "o4-mini"}, Levels: noOff, Sources: []string{openAIEffort}, Date: read},
	{
		Provider: "openai", Families: []string{"gpt-5-pro"}, Images: Yes, PDF: Yes, Levels: []string{"High"},
		Sources: []string{openAIEffort, openAIFiles}, Date: read,
	},
	{
		Provider: "openai", Families: []string{"gpt-4o", "gpt-4o-mini", "gpt-4.1", "gpt-4.1-mini", "gpt-4.1-nano", "gpt-5.2", "gpt-5.5", "gpt-5.6", "gpt-5.6-sol", "gpt-5.6-terra", "gpt-5.6-luna"},
		Images: Yes, PDF: Yes, Sources: []string{openAIFiles}, Date: read,
	},
	{
		Provider: "openai", Families: []string{"gpt-3.5-turbo", "gpt-3-5-turbo"}, Images: No,
		Sources: []string{"https://developers.openai.com/api/docs/models/gpt-3.5-turbo.md"}, Date: read,
	},
	{Provider: "openai", Families: []string{"gpt-4"}, Images: No, Sources: []string{"https://developers.openai.com/api/docs/models/gpt-4.md"}, Date: read},
	{
		Provider: "openai", Families: []string{"gpt-oss-120b", "gpt-oss-20b"}, Images: No,
		Sources: []string{"https://developers.openai.com/api/docs/models/gpt-oss-120b.md", "https://developers.openai.com/api/docs/models/gpt-oss-20b.md"}, Date: read,
	},

	// Google, at its OpenAI-compatible endpoint too.
	{
		Provider: "google", Families: []string{"gemini-2.0-flash"}, MaxOutput: 8_192, Images: Yes,
		Sources: []string{"https://ai.google.dev/gemini-api/docs/models/gemini-2.0-flash"}, Date: read,
	},
	{
		Provider: "google", Families: []string{"gemini-2.5-pro"}, Images: Yes, PDF: Yes,
		Sources: []string{"https://docs.cloud.google.com/gemini-enterprise-agent-platform/models/gemini/2-5-pro"}, Date: read,
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

	// DeepSeek. It takes sampling without effect while it thinks, so it refuses nothing.
	{
		Provider: "deepseek", Families: []string{"deepseek-flash", "deepseek-v4-flash"}, MaxOutput: 384_000, Images: Yes, Levels: allLevels,
		Sources: []string{deepSeekModels, deepSeekThinking}, Date: read,
	},
	{
		Provider: "deepseek", Families: []string{"deepseek-v4-pro"}, MaxOutput: 384_000, Images: No, Levels: allLevels,
		Sources: []string{deepSeekModels, deepSeekThinking}, Date: read,
	},

	// Kimi.
	{
		Provider: "moonshotai", Families: []string{"kimi-k2.5"}, Images: Yes, Levels: allLevels,
		Refused: []string{"temperature", "top_p", "n", "presence_penalty", "frequency_penalty"},
		Sources: []string{"https://platform.kimi.ai/docs/api/models-overview", "https://platform.moonshot.ai/docs/intro"}, Date: read,
	},
	{
		Provider: "moonshotai", Families: []string{"kimi-k2.6"}, Levels: allLevels,
		Refused: []string{"temperature", "top_p", "n", "presence_penalty", "frequency_penalty"},
		Sources: []string{"https://platform.kimi.ai/docs/api/models-overview"}, Date: read,
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
}
