package openai

import (
	"strings"

	"github.com/deckhand-dev/deckhand/runner/model"
)

// A dialect is what one provider wants to be written differently. Reading is the
// same for all of them.
type dialect struct {
	// endpoint is the default; empty means that a Model must name one.
	endpoint string
	// place is where below the endpoint the chat is.
	place place
	// apiKeyHeader is whether the key is sent in the header Api-Key, instead of as a
	// bearer token.
	apiKeyHeader bool
	// dated is the row for a Model that names a version of the API; nil: the same.
	dated *dialect

	// always is merged into every body.
	always string
	// maxTokens is the field that bounds the output.
	maxTokens string
	// reasoning holds, for each level, what is merged into the body.
	reasoning byModel[levels]
	// sampling is whether temperature and top_p are sent.
	sampling byModel[sampling]
	// cacheKey is the field that groups the requests of a session; empty: none.
	cacheKey string
	// marked is whether a prompt is cached only up to marks in it.
	marked byModel[bool]

	// echo is whether thinking goes back to who thought it, blank what stands for
	// thinking that is demanded and was none.
	echo  echo
	blank string
	// brokenArgs is what stands for arguments that are no JSON.
	brokenArgs brokenArgs
	// inline is whether models may think at the start of their text, in <think>.
	inline bool
}

// byModel is a setting that depends on how the name of a model begins: the
// longest prefix counts, the empty one is for all others.
type byModel[T any] map[string]T

func (b byModel[T]) of(name string) T {
	var best T
	length := -1
	for prefix, value := range b {
		if len(prefix) > length && strings.HasPrefix(name, prefix) {
			best, length = value, len(prefix)
		}
	}
	return best
}

// levels hold, for each level of reasoning, what is merged into the body.
type levels map[model.Reasoning]string

// place is where below its endpoint a provider's chat is.
type place int

const (
	placeHere       place = iota // right below the endpoint
	placeVersionOne              // Azure: below /openai/v1
	placeDeployment              // Azure: below the deployment
)

// sampling is whether temperature and top_p are sent.
type sampling int

const (
	samplingSent           sampling = iota
	samplingUnlessThinking          // only where reasoning is Off
	samplingFixed                   // never: the provider refuses any
)

// echo says which thinking is sent back, and how.
type echo int

const (
	echoNothing  echo = iota
	echoReceived      // what led to calls, under the name under which it came
	echoDemanded      // all, also where none came: the provider refuses calls without it
)

// brokenArgs says how a call whose arguments were no JSON is quoted.
type brokenArgs int

const (
	argsVerbatim brokenArgs = iota // the model reads its own mistake
	argsEmpty                      // {}: the provider parses them and would refuse the session
)

// sampled reports whether a request says how to draw tokens.
func (d *dialect) sampled(name string, reasoning model.Reasoning) bool {
	switch d.sampling.of(name) {
	case samplingUnlessThinking:
		return reasoning == model.ReasoningOff
	case samplingFixed:
		return false
	default:
		return true
	}
}
