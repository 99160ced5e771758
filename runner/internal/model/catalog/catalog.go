// Package catalog has the windows of well-known models, and which files they accept, for Models that do not set them. A
// wrong value does little harm: if it is too small, a session is compacted early; if it is too large, the provider
// refuses the request. Users can set contextWindow and maxOutputTokens of the Model.
package catalog

import (
	"strings"

	"github.com/deckhand-dev/deckhand/internal/shared/modelfacts"
	"github.com/deckhand-dev/deckhand/runner/step"
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

// Takes returns a function that reports which kinds of parts a model accepts. A model that is not in the table of facts
// is sent images and documents: its provider refuses them if it accepts none.
func Takes(model string) func(step.PartKind) bool {
	row, isBlind := modelfacts.TakesNoImages(strings.ReplaceAll(canonical(model), ":", "-"))
	return func(kind step.PartKind) bool {
		switch kind {
		case step.PartImage:
			return !isBlind
		case step.PartDocument:
			return !isBlind || row.PDF == modelfacts.Yes
		default:
			return true
		}
	}
}
