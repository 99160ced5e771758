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
	p.find(bytes.TrimPrefix(data, bom), 1, yield)
}

// find is Find for a part of a file: whole lines, the first of which has the
// number line. It returns the number of the line after them, and false if yield
// did.
func (p *Pattern) find(data []byte, line int, yield func(line int, text []byte) bool) (next int, more bool) {
	for ; len(data) > 0; line++ {
		// Most files do not have a plain text at all: look once, not by lines.
		if len(p.literal) > 0 {
			i := bytes.Index(data, p.literal)
			if i < 0 {
				return line + bytes.Count(data, newline), true
			}
			start := bytes.LastIndexByte(data[:i], '\n') + 1
			line, data = line+bytes.Count(data[:start], newline), data[start:]
		}
		text, rest, _ := bytes.Cut(data, newline)
		text = bytes.TrimSuffix(text, []byte("\r"))
		if p.match(text) && !yield(line, text) {
			return line, false
		}
		data = rest
	}
	return line, true
}

var newline = []byte("\n")

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
