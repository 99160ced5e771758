package catalog

import (
	"strings"

	"github.com/deckhand-dev/deckhand/internal/shared/modelfacts"
)

// Defaults for a model that is not in the table.
const (
	UnknownWindow    = 128_000
	UnknownMaxOutput = 8_000
)

// Bounds of an answer of a model without a documented maximum: an eighth of its window, within these limits.
const (
	leastOutput = 4_096
	mostOutput  = 32_768
)

// Of returns the context window of a model, by its name at any provider, and the maximum number of tokens that one
// answer may request. That is the model's maximum, or a quarter of the window if the maximum is more than half of the
// window, which leaves room for input.
func Of(model string) (window, maxOutput int64) {
	window, maxOutput = modelfacts.Sizes(canonical(model))
	switch {
	case window == 0:
		return UnknownWindow, UnknownMaxOutput
	case maxOutput == 0:
		return window, min(max(window/8, leastOutput), mostOutput)
	case maxOutput > window/2:
		return window, window / 4
	}
	return window, maxOutput
}

// canonical returns the name that a model's maker uses: in lower case, without the names of hosts, makers and
// fine-tuners ("anthropic/claude-sonnet-4.5", "us.anthropic.claude-sonnet-4-5", "ft:gpt-4o:acme").
func canonical(model string) string {
	name := strings.ToLower(model)
	name = name[strings.LastIndexByte(name, '/')+1:]
	if tuned, is := strings.CutPrefix(name, "ft:"); is {
		name, _, _ = strings.Cut(tuned, ":")
	}
	if i := strings.Index(name, "anthropic."); i >= 0 {
		name = name[i+len("anthropic."):]
	}
	return name
}
