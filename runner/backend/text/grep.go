package text

import (
	"bytes"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/deckhand-dev/deckhand/runner/backend"
)

// A Pattern finds the lines of a query.
type Pattern struct {
	re      *regexp.Regexp
	literal []byte // all of the pattern, when it is plain text
}

// CompileQuery compiles the pattern of a query.
func CompileQuery(q backend.Query) (*Pattern, error) {
	if len(q.Pattern) > backend.MaxPattern {
		return nil, &backend.PatternError{Pattern: q.Pattern[:80] + "…", Err: errTooLong}
	}
	expr := q.Pattern
	if q.Fixed {
		expr = regexp.QuoteMeta(expr)
	}
	if q.IgnoreCase {
		expr = "(?i)" + expr
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return nil, &backend.PatternError{Pattern: q.Pattern, Err: err}
	}
	p := &Pattern{re: re}
	if prefix, complete := re.LiteralPrefix(); complete {
		p.literal = []byte(prefix)
	}
	return p, nil
}

// Find yields the lines of data that match, their numbers from 1, until yield
// returns false.
func (p *Pattern) Find(data []byte, yield func(line int, text []byte) bool) {
	data = bytes.TrimPrefix(data, bom)
	for line := 1; len(data) > 0; line++ {
		// Most files do not have a plain text at all: look once, not by lines.
		if len(p.literal) > 0 {
			skipped, rest, found := p.skip(data)
			if !found {
				return
			}
			line, data = line+skipped, rest
		}
		text, rest, _ := bytes.Cut(data, []byte("\n"))
		text = bytes.TrimSuffix(text, []byte("\r"))
		if p.match(text) && !yield(line, text) {
			return
		}
		data = rest
	}
}

// skip returns the rest of data from the line on that has the literal.
func (p *Pattern) skip(data []byte) (lines int, rest []byte, found bool) {
	i := bytes.Index(data, p.literal)
	if i < 0 {
		return 0, nil, false
	}
	start := bytes.LastIndexByte(data[:i], '\n') + 1
	return bytes.Count(data[:start], []byte("\n")), data[start:], true
}

func (p *Pattern) match(line []byte) bool {
	if p.literal != nil {
		return bytes.Contains(line, p.literal)
	}
	return p.re.Match(line)
}

// Excerpt is a matching line as a Match shows it: valid text, and of a line too
// long what is around the match.
func (p *Pattern) Excerpt(line []byte) string {
	if len(line) <= backend.MaxMatchText {
		return strings.ToValidUTF8(string(line), string(utf8.RuneError))
	}
	const ellipsis = "…"
	start := 0
	if loc := p.re.FindIndex(line); loc != nil && loc[1] > backend.MaxMatchText {
		start = max(0, loc[0]-backend.MaxMatchText/4)
	}
	end := min(len(line), start+backend.MaxMatchText-2*len(ellipsis))
	// A rune that is cut in two at either edge is dropped.
	text := strings.ToValidUTF8(string(line[start:end]), "")
	if start > 0 {
		text = ellipsis + text
	}
	if end < len(line) {
		text += ellipsis
	}
	return text
}
