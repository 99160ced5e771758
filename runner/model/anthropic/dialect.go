package anthropic

import (
	"slices"
	"strings"
)

// A dialect is what one provider wants to be written differently.
type dialect struct {
	// endpoint is the default; empty means that a Model must name one.
	endpoint string
	// auth holds the headers that carry the key, and what stands before it.
	auth map[string]string
	// marksCache is whether what may be cached is marked.
	marksCache bool
	// echo is which thinking is sent back.
	echo echo
	// families are the provider's models, the first that fits; the last fits all.
	families []family
}

// echo says which of its own thinking a model gets back.
type echo int

const (
	echoSigned   echo = iota // what carries a signature: the provider refuses other
	echoReceived             // whatever came
	echoDemanded             // also where none came: the provider refuses calls without
)

// A family is models of one provider that want the same.
type family struct {
	// names are pieces of the models' names, written with dashes; none fits all.
	names []string
	// thinking is how thinking is asked for, off what is merged into the body to
	// ask for none.
	thinking thinking
	off      string
	sampling sampling
	// maxTokens is sent where no limit is given: the field is mandatory.
	maxTokens int64
}

// thinking says how a model is asked to think.
type thinking int

const (
	thinksBudget   thinking = iota // for so many tokens
	thinksEffort                   // for so many tokens, with so much effort
	thinksAdaptive                 // with so much effort, as it sees fit
)

// sampling says which fields of sampling are sent.
type sampling int

const (
	samplesBoth sampling = iota
	samplesOne           // temperature and top_p together are refused
	samplesNone          // either is refused
)

// What asks for no thinking.
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

// claudes are Anthropic's models, wherever they are hosted. Those that think by
// default, and refuse budgets and sampling, came later; a name that is not known
// is taken for one of them.
var claudes = []family{
	{names: []string{"claude-3-7"}, maxTokens: 32_000, sampling: samplesBoth},
	{names: []string{"claude-3-5"}, maxTokens: 8_192, sampling: samplesBoth},
	{names: []string{"claude-3-", "claude-2", "claude-instant"}, maxTokens: 4_096, sampling: samplesBoth},
	{
		names: []string{
			"opus-4-0", "opus-4-1", "opus-4-5", "opus-4-2025", "sonnet-4-0", "sonnet-4-5", "sonnet-4-2025", "haiku-4-5",
			"opus-4@", "sonnet-4@",
		},
		maxTokens: 32_000, sampling: samplesOne,
	},
	{names: []string{"opus-4-6", "sonnet-4-6"}, thinking: thinksAdaptive, maxTokens: 32_000, sampling: samplesOne},
	{names: []string{"opus-4-7", "opus-4-8"}, thinking: thinksAdaptive, maxTokens: 32_000, sampling: samplesNone},
	{names: []string{"sonnet-5-5"}, thinking: thinksAdaptive, off: offBetween, maxTokens: 32_000, sampling: samplesNone},
	{names: []string{"opus-5-5"}, thinking: thinksAdaptive, off: offLow, maxTokens: 32_000, sampling: samplesNone},
	{names: []string{"opus-5", "sonnet-5", "haiku-5"}, thinking: thinksAdaptive, off: offDisabled, maxTokens: 32_000, sampling: samplesNone},
	{names: []string{"claude-"}, thinking: thinksAdaptive, off: offLow, maxTokens: 32_000, sampling: samplesNone},
}

// dialects are the providers. A provider more is a row more.
var dialects = map[string]dialect{
	ProviderAnthropic: {
		endpoint:   "https://api.anthropic.com",
		auth:       map[string]string{keyHeader: ""},
		marksCache: true,
		echo:       echoSigned,
		families:   append(slices.Clip(claudes), family{off: offDisabled, maxTokens: 32_000}),
	},
	ProviderAnthropicCompatible: {
		auth:       map[string]string{keyHeader: "", bearerHeader: bearer}, // each server reads one of them
		marksCache: true,
		echo:       echoReceived,
		families:   append(slices.Clip(claudes), family{off: offDisabled, maxTokens: 8_192}),
	},
	ProviderDeepSeek: {
		endpoint: "https://api.deepseek.com/anthropic",
		auth:     map[string]string{keyHeader: ""},
		echo:     echoDemanded,
		families: []family{
			{names: []string{"deepseek-chat"}, thinking: thinksEffort, off: offDisabled, maxTokens: 8_192},
			{thinking: thinksEffort, off: offDisabled, maxTokens: 32_768},
		},
	},
	ProviderKimi: {
		endpoint: "https://api.moonshot.ai/anthropic",
		auth:     map[string]string{bearerHeader: bearer},
		echo:     echoDemanded,
		families: []family{
			{names: []string{"kimi-k2-0", "kimi-k2-1", "kimi-k2-7", "kimi-k2-turbo", "moonshot-"}, off: offDisabled, maxTokens: 16_384},
			{off: offDisabled, sampling: samplesNone, maxTokens: 32_768},
		},
	},
}

// family is the family of a model.
func (d dialect) family(model string) family {
	model = strings.ReplaceAll(strings.ToLower(model), ".", "-")
	for _, f := range d.families {
		if len(f.names) == 0 || slices.ContainsFunc(f.names, func(block string) bool { return strings.Contains(model, block) }) {
			return f
		}
	}
	return family{}
}
