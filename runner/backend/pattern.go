package backend

import (
	"bytes"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/deckhand-dev/deckhand/internal/shared/pattern"
)

// A linePattern finds the lines of a query.
type linePattern struct {
	re      *regexp.Regexp
	literal []byte // all of the pattern, when it is plain text
}

// compilePattern compiles the pattern of a query.
func compilePattern(q Query) (*linePattern, error) {
	if len(q.Pattern) > MaxPattern {
		return nil, &PatternError{Pattern: q.Pattern[:80] + "…", Err: errTooLong}
	}
	expr := q.Pattern
	if q.Fixed {
		expr = regexp.QuoteMeta(expr)
	}
	if q.IgnoreCase {
		expr = "(?i)" + expr
	}
	re, err := pattern.Compile(expr)
	if err != nil {
		return nil, &PatternError{Pattern: q.Pattern, Err: err}
	}
	p := &linePattern{re: re}
	if prefix, complete := re.LiteralPrefix(); complete {
		p.literal = []byte(prefix)
	}
	return p, nil
}

// find yields the lines of data that match, until yield returns false. data has whole lines of a file, the first of
// which has the number line. It returns the number of the line after them, and false if yield did.
func (p *linePattern) find(data []byte, line int, yield func(line int, text []byte) bool) (next int, more bool) {
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

func (p *linePattern) match(line []byte) bool {
	if p.literal != nil {
		return bytes.Contains(line, p.literal)
	}
	return p.re.Match(line)
}

// excerpt returns a matching line for a Match: valid text and, if the line is too long, the part around the match.
func (p *linePattern) excerpt(line []byte) string {
	if len(line) <= MaxMatchText {
		return strings.ToValidUTF8(string(line), string(utf8.RuneError))
	}
	const ellipsis = "…"
	start := 0
	if loc := p.re.FindIndex(line); loc != nil && loc[1] > MaxMatchText {
		start = max(0, loc[0]-MaxMatchText/4)
	}
	end := min(len(line), start+MaxMatchText-2*len(ellipsis))
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
