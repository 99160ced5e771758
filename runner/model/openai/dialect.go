package openai

import (
	"maps"
	"slices"

	"github.com/deckhand-dev/deckhand/runner/model"
)

// A dialect is what one provider wants to be written differently.
type dialect struct {
	// endpoint is the default; empty means that a Model must name one.
	endpoint string
	// maxTokens is the field that bounds the output.
	maxTokens string
	// reasoning holds, for each level, what is merged into the body.
	reasoning map[model.Reasoning]string
	// cacheKey is the field that groups the requests of a session; empty: none.
	cacheKey string
	// echo is whether thinking goes back with the calls that it led to.
	echo echo
	// brokenArgs is what stands for arguments that are no JSON.
	brokenArgs brokenArgs
}

// echo says which thinking is sent back, and how.
type echo int

const (
	echoNothing  echo = iota
	echoReceived      // what came, under the name under which it came
	echoDemanded      // also an empty one: the provider refuses calls without it
)

// brokenArgs says how a call whose arguments were no JSON is quoted.
type brokenArgs int

const (
	argsVerbatim brokenArgs = iota // the model reads its own mistake
	argsEmpty                      // {}: the provider parses them and would refuse the session
)

// efforts is how OpenAI, and most who imitate it, are told how hard to think.
var efforts = map[model.Reasoning]string{
	model.ReasoningOff:    `{"reasoning_effort":"none"}`,
	model.ReasoningLow:    `{"reasoning_effort":"low"}`,
	model.ReasoningMedium: `{"reasoning_effort":"medium"}`,
	model.ReasoningHigh:   `{"reasoning_effort":"high"}`,
}

// dialects are the providers. A provider more is a row more.
var dialects = map[string]dialect{
	ProviderOpenAI: {
		endpoint:   "https://api.openai.com/v1",
		maxTokens:  "max_completion_tokens",
		reasoning:  efforts,
		cacheKey:   "prompt_cache_key",
		echo:       echoNothing,
		brokenArgs: argsVerbatim,
	},
	ProviderOpenAICompatible: {
		maxTokens:  "max_tokens",
		reasoning:  efforts,
		echo:       echoReceived,
		brokenArgs: argsEmpty,
	},
}

func providers() []string { return slices.Sorted(maps.Keys(dialects)) }
