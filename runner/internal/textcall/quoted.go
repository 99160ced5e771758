package textcall

import (
	"regexp"
	"strings"
	"sync"
)

// minQuote is the length from which a line of a call is compared, in bytes: shorter lines,
// such as those of brackets, are in every text.
const minQuote = 8

// IsQuotation reports whether the call stands, line by line, in one of the texts that the
// model was given.
func (c Call) IsQuotation(given []string) bool {
	for _, text := range given {
		if c.isIn(squeeze(text)) {
			return true
		}
	}
	return false
}

func (c Call) isIn(text string) bool {
	compared := false
	for line := range strings.SplitSeq(c.text, "\n") {
		if line = squeeze(line); len(line) < minQuote {
			continue
		}
		if compared = true; !strings.Contains(text, line) {
			return false
		}
	}
	return compared
}

// squeeze removes all space.
func squeeze(text string) string { return strings.Join(strings.Fields(text), "") }

// IsRequested reports whether what a user said asks to see a call: it has the markup of the
// call, or asks in one sentence to show or explain a tool call. Instructions describe the
// markup to a model that is to use it, so that they must ask, too.
func (c Call) IsRequested(said []string, instructions string) bool {
	for _, text := range said {
		if c.hasMarker(text) || c.asks(text) {
			return true
		}
	}
	return c.hasMarker(instructions) && c.asks(instructions)
}

// hasMarker reports whether a text has the markup of the call.
func (c Call) hasMarker(text string) bool {
	marker, _, _ := strings.Cut(strings.TrimRight(c.marker, ">"), c.Name)
	return len(marker) > 1 && strings.Contains(text, strings.TrimRight(marker, ` "'`))
}

// asks reports whether a text asks to see a tool call, or names this tool and asks to see or
// explain a call.
func (c Call) asks(text string) bool {
	for _, sentence := range sentences().Split(text, -1) {
		named := strings.Contains(sentence, c.Name) || c.hasMarker(sentence)
		if oneToolCall().MatchString(sentence) || named && oneCall().MatchString(sentence) {
			return true
		}
	}
	return false
}

var (
	sentences = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[.!?]\s+|\n`) })
	// oneToolCall asks to see one tool call, before or behind the words for it. A report about
	// tool calls that were made has the plural.
	oneToolCall = sync.OnceValue(func() *regexp.Regexp {
		const call = `(?:an?|one|the|this)\s+(?:[\w-]+\s+){0,2}tool[ -]?(?:call|use|invocation)\b`
		return regexp.MustCompile(`(?i)\b(?:shows?|give|write|print|example|sample|illustrate|demonstrate|explain|quote|repeat|convert|translate|generate|what|how)\b.*\b` + call +
			`|\b` + call + `.*\b(?:looks?|format|syntax|example|written|without|as text|in json)\b|(?:tool|werkzeug)[ -]?aufruf`)
	})
	// oneCall asks to see or explain a call.
	oneCall = sync.OnceValue(func() *regexp.Regexp {
		const call = `(?:calls?|calling|invocations?|invoked?|used?)`
		return regexp.MustCompile(`(?i)\b(?:shows?|give|print|example|sample|illustrate|demonstrate|explain|describe|document|quote|repeat|convert|translate)\b.*\b` + call + `\b|\b` + call +
			`\b.*\b(?:looks?|format|syntax|example|written)\b|aufruf|llamada|appel|chiamata|调用|呼び出し|вызов`)
	})
)
