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

// Bounds of an answer of a model whose longest one is not documented: an eighth of its window, but not
// less and not more than this.
const (
	leastOutput = 4_096
	mostOutput  = 32_768
)

// Of is the context window of a model, by its name at any provider, and the most that it is asked to write
// in one answer, in tokens. That is the longest answer that it can write, or a quarter of the window if that
// answer fills more than half of it: there must be room to read.
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

// canonical is a name as its maker writes it: in lower case, without who hosts it, made it or tuned it
// ("anthropic/claude-sonnet-4.5", "us.anthropic.claude-sonnet-4-5", "ft:gpt-4o:acme").
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
