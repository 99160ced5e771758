package openai

import (
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/model/httpapi"
	"github.com/deckhand-dev/deckhand/runner/model"
)

// A dialect has the differences of one provider: in its requests, and in the meaning of finish reasons. Everything else
// in answers is read in the same way for all.
type dialect struct {
	// endpoint is the default; empty means that a Model must name one.
	endpoint string
	// idle is the longest time without a byte unless a Model sets it; 0: the default of hosted providers.
	idle time.Duration
	// chatPath determines the path of chat completions below the endpoint.
	chatPath chatPath
	// apiKeyHeader reports whether the key is sent in the header Api-Key instead of as a
	// bearer token.
	apiKeyHeader bool
	// hasResponses reports whether the provider has the Responses API too.
	hasResponses bool
	// withAPIVersion is the dialect of a Model with an API version; nil means this one.
	withAPIVersion *dialect

	// extraBody is merged into every body.
	extraBody string
	// maxTokens is the field that bounds the output.
	maxTokens string
	// reasoning has, for each level, the fields that are merged into the body.
	reasoning byModel[levels]
	// sampling determines whether temperature and top_p are sent.
	sampling byModel[sampling]
	// cacheKey is the field that groups the requests of a session; empty: none.
	cacheKey string
	// marked reports whether a prompt is cached only up to cache_control.
	marked byModel[bool]

	// echo selects which reasoning is sent back; emptyReasoning is sent if it is required and there was none.
	echo           echo
	emptyReasoning string
	// invalidArgs selects what replaces arguments that are not JSON.
	invalidArgs invalidArgs
	// thinkTags reports whether models may write thinking in <think> at the start of a text.
	thinkTags bool

	// files are the provider's limits of images and documents.
	files httpapi.FileLimits

	// finishReasons are the finish reasons with another meaning than at other servers.
	finishReasons []httpapi.FinishReason
}

// byModel is a setting that depends on how the name of a model begins: the
// longest prefix counts, the empty one is for all others.
type byModel[T any] map[string]row[T]

// A row is a setting, and where it is from.
type row[T any] struct {
	value T
	// sources are the addresses of the documentation, httpapi.RecordedAnswers or httpapi.NoSource;
	// date is when they were read.
	sources []string
	date    string
}

func (b byModel[T]) of(name string) T {
	var best T
	length := -1
	for prefix, r := range b {
		if len(prefix) > length && strings.HasPrefix(name, prefix) {
			best, length = r.value, len(prefix)
		}
	}
	return best
}

// levels have, for each level of reasoning, the fields that are merged into the body.
type levels map[model.Reasoning]string

// chatPath determines the path of chat completions below the endpoint.
type chatPath int

const (
	chatPathDirect     chatPath = iota // right below the endpoint
	chatPathVersionOne                 // Azure: below /openai/v1
	chatPathDeployment                 // Azure: below the deployment
)

// sampling determines whether temperature and top_p are sent.
type sampling int

const (
	samplingSent           sampling = iota
	samplingUnlessThinking          // only where reasoning is Off
	samplingFixed                   // never: the provider refuses any
)

// echo selects which reasoning is sent back, and how.
type echo int

const (
	echoNothing  echo = iota
	echoReceived      // with calls, in the field in which it arrived
	echoDemanded      // always: the provider refuses calls without it
)

// invalidArgs selects how a call is sent whose arguments were not JSON.
type invalidArgs int

const (
	argsVerbatim invalidArgs = iota // the model sees its own mistake
	argsEmpty                       // {}: the provider parses them and would refuse the session
)

// keyHeaders returns the header of a key, with its prefix.
func (d *dialect) keyHeaders() map[string]string {
	if d.apiKeyHeader {
		return map[string]string{"Api-Key": ""}
	}
	return map[string]string{"Authorization": "Bearer "}
}

// sampled reports whether temperature and top_p are sent.
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
