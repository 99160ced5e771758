package anthropic

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/model/httpapi"
	"github.com/deckhand-dev/deckhand/runner/model"
)

// A dialect holds how the requests of one provider differ.
type dialect struct {
	// endpoint is the default; empty means that a Model must name one.
	endpoint string
	// idle is the longest time without a byte unless a Model sets it; 0: the default of hosted providers.
	idle time.Duration
	// auth holds the headers that carry the key, with their prefixes.
	auth map[string]string
	// invokes reports whether requests are InvokeModelWithResponseStream of Bedrock.
	invokes bool
	// cachesPrompt reports whether requests have cache_control.
	cachesPrompt bool
	// echo selects which thinking is sent back.
	echo echo
	// files are the provider's limits of images and documents.
	files httpapi.FileLimits
	// families are the families of models; the first that matches counts, the last
	// matches all.
	families []family
}

// echo selects which of its own thinking a model gets back.
type echo int

const (
	echoSigned   echo = iota // what carries a signature: the provider refuses other
	echoReceived             // whatever came
	echoDemanded             // also where none came: the provider refuses calls without
)

// A family is a group of models that accept the same requests.
type family struct {
	// names are parts of the names of models, with dashes; an empty list matches all.
	names []string
	// efforts are the efforts of the levels of reasoning; nil: those of the API.
	efforts map[model.Reasoning]string
	// thinking selects how thinking is requested. off is merged into the body to turn it off.
	thinking thinking
	off      string
	sampling sampling
	// maxTokens is the default of the field, which is required.
	maxTokens int64
	// sources are the addresses of the documentation, httpapi.RecordedAnswers or httpapi.NoSource;
	// date is when they were read.
	sources []string
	date    string
}

// thinking selects how thinking is requested.
type thinking int

const (
	thinksBudget   thinking = iota // with a token budget
	thinksEffort                   // with a token budget and an effort
	thinksAdaptive                 // with an effort; the model decides how long
	thinksAlways                   // with an effort, and no field that turns it on
)

// sampling selects which fields of sampling are sent.
type sampling int

const (
	samplesBoth sampling = iota
	samplesOne           // temperature and top_p together are refused
	samplesNone          // either is refused
)

// The patches that turn thinking off.
const (
	offOmitted  = ""
	offDisabled = `{"thinking":{"type":"disabled"}}`
	offBetween  = `{"thinking":{"type":"between_tools"}}`
	offLow      = `{"output_config":{"effort":"low"}}` // it cannot be turned off
)

const (
	keyHeader    = "X-Api-Key"
	bearerHeader = "Authorization"
	bearer       = "Bearer "
)

// read is the day on which the documentation below was read.
const read = "2026-11-28"

// The documentation of the families.
const (
	claudeDocs      = "https://platform.claude.com/docs/"
	claudeOutput    = "https://docs.rs/mixtape-core/latest/src/mixtape_core/models/claude.rs.html"
	claude3Output   = "https://api.koog.ai/prompt/prompt-executor/prompt-executor-clients/prompt-executor-bedrock-client/ai.koog.prompt.executor.clients.bedrock.modelfamilies/-bedrock-anthropic-invoke-model/-companion/-m-a-x_-t-o-k-e-n-s_-d-e-f-a-u-l-t.html"
	claude35        = "https://docs.aws.amazon.com/es_es/bedrock/latest/userguide/model-card-anthropic-claude-3-5-haiku.html"
	claude4         = claudeDocs + "zh-CN/about-claude/models/migrating-to-claude-4"
	claude41        = "https://github.com/open-webui/functions/pull/9"
	claude46        = claudeDocs + "zh-CN/about-claude/models/migration-guide"
	claude46Fields  = "https://git.drupalcode.org/project/ai/-/work_items/3580249"
	claude47        = "https://openrouter.ai/docs/guides/evaluate-and-optimize/model-migrations/claude-4-7"
	claudeSampling  = "https://docs.memberjunction.org/v6.2/api/functions/_memberjunction_ai-anthropic.RejectsSamplingParams.html"
	opus5           = claudeDocs + "zh-CN/models/opus-5/migration-guide"
	sonnet5         = claudeDocs + "zh-CN/models/sonnet-5/migration-guide"
	haiku55         = claudeDocs + "en/models/haiku-5-5/whats-new-haiku-5-5"
	haiku55Off      = "https://github.com/vercel/ai/releases/tag/@ai-sdk%2Fanthropic@2.0.109"
	sonnet55        = claudeDocs + "en/models/sonnet-5-5/whats-new-sonnet-5-5"
	opus55          = claudeDocs + "zh-CN/models/opus-5-5/whats-new-opus-5-5"
	deepSeekAPI     = "https://api-docs.deepseek.com/guides/anthropic_api/"
	deepSeekChat    = "https://www.promptfoo.dev/docs/providers/deepseek/"
	deepSeekEfforts = "https://api-docs.deepseek.com/guides/thinking_mode.md"
	kimiMessages    = "https://metacpan.org/pod/Langertha::Engine::MoonshotAnthropic"
	kimiThinking    = "https://platform.moonshot.cn/docs/guide/use-kimi-k2-thinking-model"
	kimiReasoning   = "https://docs.rs/synaps-engine/0.11.0/src/agent_engine/runtime/openai/catalog/kimi.rs.html"
	kimiFields      = "https://java.agentscope.io/v2/en/integration/model/kimi"
	kimiK2Fields    = "https://raw.githubusercontent.com/api-evangelist/moonshot-ai/refs/heads/main/json-schema/moonshot-ai-kimi-k2-chat-request-schema.json"
)

// claudeFamilies are Anthropic's models, on any host. An unknown name counts as a later
// model, which thinks by default and refuses budgets and sampling.
var claudeFamilies = []family{
	{
		names: []string{"claude-3-7"}, maxTokens: 32_000, sampling: samplesBoth,
		sources: []string{claude4, claudeOutput, httpapi.RecordedAnswers}, date: read,
	},
	{names: []string{"claude-3-5"}, maxTokens: 8_192, sampling: samplesBoth, sources: []string{claude35}, date: read},
	{
		names: []string{"claude-3-", "claude-2", "claude-instant"}, maxTokens: 4_096, sampling: samplesBoth,
		sources: []string{claude3Output}, date: read,
	},
	{
		names: []string{
			"opus-4-0", "opus-4-1", "opus-4-5", "opus-4-2025", "sonnet-4-0", "sonnet-4-5", "sonnet-4-2025", "haiku-4-5",
			"opus-4@", "sonnet-4@",
		},
		maxTokens: 32_000, sampling: samplesOne,
		sources: []string{claude4, claude41, claudeOutput, httpapi.RecordedAnswers}, date: read,
	},
	{
		names: []string{"opus-4-6", "sonnet-4-6"}, thinking: thinksAdaptive, maxTokens: 32_000, sampling: samplesOne,
		sources: []string{claude46, claude46Fields, httpapi.RecordedAnswers}, date: read,
	},
	{
		names: []string{"opus-4-7", "opus-4-8"}, thinking: thinksAdaptive, maxTokens: 32_000, sampling: samplesNone,
		sources: []string{claude47, claudeSampling, opus5}, date: read,
	},
	{
		names: []string{"sonnet-5-5"}, thinking: thinksAdaptive, off: offBetween, maxTokens: 32_000, sampling: samplesNone,
		sources: []string{sonnet55, claudeSampling}, date: read,
	},
	{
		names: []string{"opus-5-5"}, thinking: thinksAdaptive, off: offLow, maxTokens: 32_000, sampling: samplesNone,
		sources: []string{opus55, claudeSampling}, date: read,
	},
	{
		names: []string{"opus-5", "sonnet-5", "haiku-5"}, thinking: thinksAdaptive, off: offDisabled, maxTokens: 32_000, sampling: samplesNone,
		sources: []string{opus5, sonnet5, haiku55, haiku55Off}, date: read,
	},
	{
		names: []string{"claude-"}, thinking: thinksAdaptive, off: offLow, maxTokens: 32_000, sampling: samplesNone,
		sources: []string{opus55, claudeSampling}, date: read,
	},
}

// othersWith returns the family of models with unknown names, with a default of max_tokens.
func othersWith(maxTokens int64) family {
	return family{off: offDisabled, maxTokens: maxTokens, sources: []string{httpapi.NoSource}, date: read}
}

// kimiEfforts are the efforts of Kimi K3, which has none between low and high.
var kimiEfforts = map[model.Reasoning]string{model.ReasoningLow: "low", model.ReasoningMedium: "high", model.ReasoningHigh: "max"}

// claudeFiles are the limits of Anthropic for up to 20 images, on 2026-11-27; gateways pass them on.
// https://platform.claude.com/docs/en/build-with-claude/vision.md
var claudeFiles = httpapi.FileLimits{Side: 8000}

// dialects holds the dialect of each provider.
var dialects = map[string]dialect{
	ProviderAnthropic: {
		endpoint:     "https://api.anthropic.com",
		auth:         map[string]string{keyHeader: ""},
		cachesPrompt: true,
		files:        claudeFiles,
		echo:         echoSigned,
		families:     append(slices.Clip(claudeFamilies), othersWith(32_000)),
	},
	ProviderAnthropicCompatible: {
		idle:         httpapi.IdleOwnServer,
		auth:         map[string]string{keyHeader: "", bearerHeader: bearer}, // each server reads one of them
		cachesPrompt: true,
		files:        claudeFiles,
		echo:         echoReceived,
		families:     append(slices.Clip(claudeFamilies), othersWith(8_192)),
	},
	ProviderBedrock: {
		auth:         map[string]string{bearerHeader: bearer},
		invokes:      true,
		cachesPrompt: true,
		files:        claudeFiles,
		echo:         echoSigned,
		families:     append(slices.Clip(claudeFamilies), othersWith(8_192)),
	},
	ProviderDeepSeek: {
		endpoint: "https://api.deepseek.com/anthropic",
		auth:     map[string]string{keyHeader: ""},
		echo:     echoDemanded,
		families: []family{
			{
				names: []string{"deepseek-chat"}, thinking: thinksEffort, off: offDisabled, maxTokens: 8_192,
				sources: []string{deepSeekAPI, deepSeekChat}, date: read,
			},
			{thinking: thinksEffort, off: offDisabled, maxTokens: 32_768, sources: []string{deepSeekAPI, deepSeekEfforts}, date: read},
		},
	},
	ProviderKimi: {
		endpoint: "https://api.moonshot.ai/anthropic",
		auth:     map[string]string{bearerHeader: bearer},
		echo:     echoDemanded,
		families: []family{
			{
				names: []string{"kimi-k2-0", "kimi-k2-1", "kimi-k2-turbo", "moonshot-"}, off: offDisabled, maxTokens: 16_384,
				sources: []string{kimiK2Fields, kimiFields}, date: read,
			},
			{
				names: []string{"kimi-k3"}, thinking: thinksAlways, efforts: kimiEfforts, off: offLow, sampling: samplesNone, maxTokens: 32_768,
				sources: []string{kimiMessages, kimiReasoning, kimiFields}, date: read,
			},
			{
				names: []string{"kimi-k2-7", "kimi-k2-thinking"}, off: offOmitted, sampling: samplesNone, maxTokens: 32_768,
				sources: []string{kimiMessages, kimiThinking, kimiReasoning, kimiFields}, date: read,
			},
			{off: offDisabled, sampling: samplesNone, maxTokens: 32_768, sources: []string{kimiMessages, kimiFields}, date: read},
		},
	},
}

// family returns the family of a model.
func (d dialect) family(name string) family {
	name = strings.ReplaceAll(strings.ToLower(name), ".", "-")
	for _, f := range d.families {
		if len(f.names) == 0 || slices.ContainsFunc(f.names, func(part string) bool { return strings.Contains(name, part) }) {
			return f
		}
	}
	return family{}
}

// Bedrock offers the Messages API with its own operation, InvokeModelWithResponseStream. The model is in the path, the
// version of the API in the body, and each event of the answer is base64 in the payload of a frame.
// https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InvokeModelWithResponseStream.html

// bedrockVersion is the version of the API in the body of a request to Bedrock.
const bedrockVersion = "bedrock-2023-05-31"

// eventChunk is the name of a frame with an event of the Messages API.
const eventChunk = "chunk"

// invokePath returns the path of a request. The name of a model may be an ARN, with colons and
// slashes.
func invokePath(name string) string {
	return "/model/" + strings.ReplaceAll(url.PathEscape(name), ":", "%3A") + "/invoke-with-response-stream"
}

// unwrap replaces a frame by the event in it. Answers of a gateway may have events as lines, which stay.
func unwrap(received *httpapi.Event) error {
	if string(received.Name) != eventChunk {
		return nil
	}
	var payload struct {
		Bytes []byte `json:"bytes"`
	}
	if err := json.Unmarshal(received.Data, &payload); err != nil {
		return fmt.Errorf("decoding a frame: %w", err)
	}
	received.Name, received.Data = nil, payload.Bytes
	return nil
}
