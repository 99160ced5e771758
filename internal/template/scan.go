package expr

import (
	"strings"
	"unicode/utf8"
)

const (
	opens   = "${{"
	closes  = "}}"
	escape  = '$'
	literal = "; write $${{ where a literal ${{ is meant"
)

// A segment is a piece of a template: words, and then an expression, if any.
type segment struct {
	words        string
	expression   string // between ${{ and }}
	found        bool   // whether there is one
	line, column int    // of its first character
}

// split takes a text apart. What is wrong is at the ${{.
func split(text string) ([]segment, *Error) {
	var all []segment
	words, from := "", 0
	for {
		at := strings.Index(text[from:], opens)
		if at < 0 {
			return append(all, segment{words: words + text[from:]}), nil
		}
		at += from
		inner := at + len(opens)
		if at > from && text[at-1] == escape {
			words += text[from:at-1] + opens
			from = inner
			continue
		}
		length := expressionLength(text[inner:])
		line, column := position(text[:inner])
		if length < 0 {
			return nil, &Error{Expression: shorten(text[at:]), Line: line, Column: column - len(opens), Message: "${{ is not closed by }}" + literal}
		}
		all = append(all, segment{
			words: words + text[from:at], expression: text[inner : inner+length], found: true,
			line: line, column: column,
		})
		words, from = "", inner+length+len(closes)
	}
}

// position is the line and the column, in characters, after a text.
func position(text string) (line, column int) {
	return 1 + strings.Count(text, "\n"), 1 + utf8.RuneCountInString(text[strings.LastIndexByte(text, '\n')+1:])
}

// expressionLength is how far an expression goes that is followed by }}: those
// within text, and of objects in objects, are its own. Negative: to no end.
func expressionLength(text string) int {
	braces := 0
	for i := 0; i < len(text); {
		switch c := text[i]; {
		case c == '{':
			braces++
		case c == '}' && braces > 0:
			braces--
		case strings.HasPrefix(text[i:], closes):
			return i
		case c == '"' || c == '\'' || c == '`':
			i += quotedLength(text, i)
			continue
		case strings.HasPrefix(text[i:], "//"):
			i += commentLength(text[i:])
			continue
		}
		i++
	}
	return -1
}

// commentLength is how far a comment goes: to the end of the line or of the
// expression.
func commentLength(text string) int {
	end := len(text)
	for _, stop := range []string{"\n", closes} {
		if at := strings.Index(text, stop); at >= 0 {
			end = min(end, at)
		}
	}
	return end
}

// quotedLength is how long the text in quotes is that begins at a place: in one
// or three of them, and with escapes, unless it is raw.
func quotedLength(text string, from int) int {
	quote := text[from : from+1]
	if triple := strings.Repeat(quote, 3); quote != "`" && strings.HasPrefix(text[from:], triple) {
		quote = triple
	}
	raw := quote == "`" || isRaw(text[:from])
	for i := from + len(quote); i < len(text); i++ {
		switch {
		case text[i] == '\\' && !raw:
			i++
		case strings.HasPrefix(text[i:], quote):
			return i + len(quote) - from
		}
	}
	return len(text) - from
}

// isRaw reports whether what is before quotes makes their text raw: an r, alone
// or with a b.
func isRaw(before string) bool {
	prefix := before[len(strings.TrimRight(before, "rRbB")):]
	rest := before[:len(before)-len(prefix)]
	if rest != "" && isNameByte(rest[len(rest)-1]) {
		return false
	}
	return len(prefix) <= 2 && strings.ContainsAny(prefix, "rR")
}

func isNameByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
