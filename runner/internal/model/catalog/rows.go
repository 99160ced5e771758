package catalog

// A row is what is known of the models whose canonical name begins so.
type row struct {
	provider          string // empty: any
	prefix            string
	window, maxOutput int64
}

// rows are the models. The figures are those of the providers' own documentation
// (their pages "models" and "pricing") in the autumn of 2026, of the makers' model
// cards for open weights; where a name has stood for several generations, the
// smaller ones. maxOutput is at most half of the window, so that there is room to
// read. Of an open model a host may serve less: Ollama as much as its own
// OLLAMA_CONTEXT_LENGTH, which a Model should repeat as contextWindow.
var rows = []row{
	// Anthropic.
	{prefix: "claude-", window: 200_000, maxOutput: 32_000},

	{prefix: "claude-2", window: 100_000, maxOutput: 4_096},
	{prefix: "claude-instant", window: 100_000, maxOutput: 4_096},
	{prefix: "claude-3-haiku", window: 200_000, maxOutput: 4_096},
	{prefix: "claude-3-opus", window: 200_000, maxOutput: 4_096},
	{prefix: "claude-3-sonnet", window: 200_000, maxOutput: 4_096},
	{prefix: "claude-3-5", window: 200_000, maxOutput: 8_192},
	{prefix: "claude-3-7", window: 200_000, maxOutput: 64_000},
	{prefix: "claude-sonnet-4", window: 200_000, maxOutput: 64_000},
	{prefix: "claude-4-sonnet", window: 200_000, maxOutput: 64_000},
	{prefix: "claude-sonnet-5", window: 200_000, maxOutput: 64_000},
	{prefix: "claude-haiku-4", window: 200_000, maxOutput: 64_000},
	{prefix: "claude-opus-4", window: 200_000, maxOutput: 32_000},
	{prefix: "claude-4-opus", window: 200_000, maxOutput: 32_000},
	{prefix: "claude-opus-4-5", window: 200_000, maxOutput: 64_000},
	{prefix: "claude-opus-4-6", window: 200_000, maxOutput: 64_000},

	// OpenAI, and Azure, which writes 35 for 3.5.
	{prefix: "gpt-3-5-turbo", window: 16_385, maxOutput: 4_096},
	{prefix: "gpt-35-turbo", window: 16_385, maxOutput: 4_096},
	{prefix: "gpt-4", window: 8_192, maxOutput: 4_096},
	{prefix: "gpt-4-32k", window: 32_768, maxOutput: 8_192},
	{prefix: "gpt-4-1106", window: 128_000, maxOutput: 4_096},
	{prefix: "gpt-4-0125", window: 128_000, maxOutput: 4_096},
	{prefix: "gpt-4-turbo", window: 128_000, maxOutput: 4_096},
	{prefix: "gpt-4o", window: 128_000, maxOutput: 16_384},
	{prefix: "chatgpt-4o", window: 128_000, maxOutput: 16_384},
	{prefix: "gpt-4-1", window: 1_047_576, maxOutput: 32_768},
	{prefix: "gpt-4-5", window: 128_000, maxOutput: 16_384},
	{prefix: "gpt-5", window: 400_000, maxOutput: 128_000},
	{prefix: "gpt-5-chat", window: 128_000, maxOutput: 16_384},
	{prefix: "gpt-6", window: 400_000, maxOutput: 128_000},
	{prefix: "gpt-oss", window: 131_072, maxOutput: 32_768},
	{prefix: "codex-mini", window: 200_000, maxOutput: 100_000},
	{prefix: "o1", window: 200_000, maxOutput: 100_000},
	{prefix: "o1-mini", window: 128_000, maxOutput: 64_000},
	{prefix: "o1-preview", window: 128_000, maxOutput: 32_768},
	{prefix: "o3", window: 200_000, maxOutput: 100_000},
	{prefix: "o4-mini", window: 200_000, maxOutput: 100_000},

	// DeepSeek. Its own names from before V4 mean V4 there by now; elsewhere they
	// are what they were.
	{prefix: "deepseek", window: 128_000, maxOutput: 8_192},
	{prefix: "deepseek-reasoner", window: 128_000, maxOutput: 64_000},
	{prefix: "deepseek-r1", window: 128_000, maxOutput: 32_768},
	{prefix: "deepseek-v4", window: 1_000_000, maxOutput: 384_000},
	{provider: "DeepSeek", prefix: "deepseek-flash", window: 1_000_000, maxOutput: 384_000},

	// Moonshot.
	{prefix: "kimi-", window: 131_072, maxOutput: 32_768},
	{prefix: "kimi-k2", window: 131_072, maxOutput: 16_384},
	{prefix: "kimi-k2-0905", window: 262_144, maxOutput: 32_768},
	{prefix: "kimi-k2-instruct-0905", window: 262_144, maxOutput: 32_768},
	{prefix: "kimi-k2-turbo", window: 262_144, maxOutput: 32_768},
	{prefix: "kimi-k2-thinking", window: 262_144, maxOutput: 65_536},
	{prefix: "kimi-k2-5", window: 262_144, maxOutput: 65_536},
	{prefix: "kimi-k2-6", window: 262_144, maxOutput: 65_536},
	{prefix: "kimi-k2-7", window: 262_144, maxOutput: 65_536},
	{prefix: "kimi-k3", window: 262_144, maxOutput: 65_536},
	{prefix: "moonshot-v1-8k", window: 8_192, maxOutput: 4_096},
	{prefix: "moonshot-v1-32k", window: 32_768, maxOutput: 8_192},
	{prefix: "moonshot-v1", window: 131_072, maxOutput: 16_384},

	// Google.
	{prefix: "gemini-", window: 1_048_576, maxOutput: 65_536},
	{prefix: "gemini-1-5", window: 1_048_576, maxOutput: 8_192},
	{prefix: "gemini-2-0", window: 1_048_576, maxOutput: 8_192},
	{prefix: "gemma", window: 8_192, maxOutput: 4_096},
	{prefix: "gemma3", window: 131_072, maxOutput: 8_192},
	{prefix: "gemma-3", window: 131_072, maxOutput: 8_192},
	{prefix: "gemma4", window: 131_072, maxOutput: 8_192},
	{prefix: "gemma-4", window: 131_072, maxOutput: 8_192},

	// Meta. Hosts serve Llama 4 with less than it was made for.
	{prefix: "llama", window: 8_192, maxOutput: 4_096},
	{prefix: "llama2", window: 4_096, maxOutput: 2_048},
	{prefix: "llama-2", window: 4_096, maxOutput: 2_048},
	{prefix: "llama3-1", window: 131_072, maxOutput: 8_192},
	{prefix: "llama-3-1", window: 131_072, maxOutput: 8_192},
	{prefix: "meta-llama-3-1", window: 131_072, maxOutput: 8_192},
	{prefix: "llama3-2", window: 131_072, maxOutput: 8_192},
	{prefix: "llama-3-2", window: 131_072, maxOutput: 8_192},
	{prefix: "llama3-3", window: 131_072, maxOutput: 8_192},
	{prefix: "llama-3-3", window: 131_072, maxOutput: 8_192},
	{prefix: "llama4", window: 131_072, maxOutput: 8_192},
	{prefix: "llama-4", window: 131_072, maxOutput: 8_192},

	// Alibaba.
	{prefix: "qwen", window: 32_768, maxOutput: 8_192},
	{prefix: "qwq", window: 131_072, maxOutput: 32_768},
	{prefix: "qwen-plus", window: 131_072, maxOutput: 16_384},
	{prefix: "qwen2-5", window: 131_072, maxOutput: 8_192},
	{prefix: "qwen-2-5", window: 131_072, maxOutput: 8_192},
	{prefix: "qwen3", window: 40_960, maxOutput: 16_384},
	{prefix: "qwen3-235b", window: 131_072, maxOutput: 32_768},
	{prefix: "qwen3-next", window: 262_144, maxOutput: 32_768},
	{prefix: "qwen3-coder", window: 262_144, maxOutput: 65_536},
	{prefix: "qwen3-max", window: 262_144, maxOutput: 32_768},
	{prefix: "qwen3-5", window: 262_144, maxOutput: 65_536},

	// Mistral.
	{prefix: "mistral", window: 32_768, maxOutput: 8_192},
	{prefix: "mistral-large", window: 131_072, maxOutput: 16_384},
	{prefix: "mistral-medium", window: 131_072, maxOutput: 16_384},
	{prefix: "mistral-small", window: 131_072, maxOutput: 16_384},
	{prefix: "mistral-nemo", window: 131_072, maxOutput: 16_384},
	{prefix: "open-mistral-nemo", window: 131_072, maxOutput: 16_384},
	{prefix: "magistral", window: 131_072, maxOutput: 32_768},
	{prefix: "ministral", window: 131_072, maxOutput: 16_384},
	{prefix: "pixtral", window: 131_072, maxOutput: 16_384},
	{prefix: "devstral", window: 131_072, maxOutput: 16_384},
	{prefix: "codestral", window: 262_144, maxOutput: 16_384},
	{prefix: "mixtral-8x7b", window: 32_768, maxOutput: 8_192},
	{prefix: "mixtral-8x22b", window: 65_536, maxOutput: 8_192},

	// Others that routers offer.
	{prefix: "grok-3", window: 131_072, maxOutput: 16_384},
	{prefix: "grok-4", window: 256_000, maxOutput: 65_536},
	{prefix: "grok-code", window: 256_000, maxOutput: 16_384},
	{prefix: "glm-4", window: 128_000, maxOutput: 16_384},
	{prefix: "glm-4-6", window: 200_000, maxOutput: 65_536},
	{prefix: "glm-4-7", window: 200_000, maxOutput: 65_536},
	{prefix: "glm-5", window: 200_000, maxOutput: 65_536},
	{prefix: "minimax-m2", window: 196_608, maxOutput: 65_536},
	{prefix: "command-r", window: 128_000, maxOutput: 4_096},
	{prefix: "command-a", window: 256_000, maxOutput: 8_192},
	{prefix: "phi-4", window: 16_384, maxOutput: 4_096},
	{prefix: "phi4", window: 16_384, maxOutput: 4_096},
}
