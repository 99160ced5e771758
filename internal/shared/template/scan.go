package template

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	opens  = "${{"
	closes = "}}"
	escape = '$'
)

// LiteralHint is the advice at the end of a message about a text that may not be meant as an expression.
const LiteralHint = "; write $${{ where a literal ${{ is meant"

// Literal returns a text in which ${{ is escaped: its Scan has no expression, and the original text as its words. It is
// for whole texts: joining two of them can create a ${{.
func Literal(text string) string { return strings.ReplaceAll(text, opens, string(escape)+opens) }

// An Error is an error at a position of a text.
type Error struct {
	// Line and Column, in characters, count from 1 and are the position of ${{.
	Line, Column int
	Message      string

	rest string // of the text, from ${{
}

func (e *Error) Error() string {
	if e.Line > 1 {
		return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
	}
	return fmt.Sprintf("column %d: %s", e.Column, e.Message)
}

// Rest returns the text from an unclosed ${{.
func (e *Error) Rest() string { return e.rest }

// Count returns how often ${{ is in a text: at least as many as its expressions, because an
// escaped one counts too.
func Count(text string) int { return strings.Count(text, opens) }

// Has reports whether ${{ is in a text, escaped or not.
func Has(text string) bool { return strings.Contains(text, opens) }

// A Part is a piece of a text: words, and then an expression in ${{ }}, if any.
type Part struct {
	// Words are unescaped: $${{ is ${{.
	Words string
	// Expression is the text between ${{ and }}, if HasExpression is set.
	Expression    string
	HasExpression bool
	// Line and Column, in characters, count from 1 and are the position of ${{.
	Line, Column int
}

// Scan divides a text at its expressions. An expression ends at the first }} that is
// not in its quotes or braces, as CEL has them. The error is an [*Error].
func Scan(text string) ([]Part, error) {
	var all []Part
	words := ""
	p := position{line: 1, column: 1}
	for {
		at := strings.Index(text, opens)
		if at < 0 {
			return append(all, Part{Words: words + text}), nil
		}
		inner := at + len(opens)
		if at > 0 && text[at-1] == escape {
			words += text[:at-1] + opens
			p.advance(text[:inner])
			text = text[inner:]
			continue
		}
		p.advance(text[:at])
		length := expressionLength(text[inner:])
		if length < 0 {
			return nil, &Error{Line: p.line, Column: p.column, Message: "${{ is not closed by }}" + LiteralHint, rest: text[at:]}
		}
		end := inner + length + len(closes)
		all = append(all, Part{
			Words: words + text[:at], Expression: text[inner : inner+length], HasExpression: true,
			Line: p.line, Column: p.column,
		})
		p.advance(text[at:end])
		words, text = "", text[end:]
	}
}

// A position is a place in a text.
type position struct{ line, column int }

// advance moves the position to the end of a piece of text.
func (p *position) advance(text string) {
	if n := strings.Count(text, "\n"); n > 0 {
		p.line += n
		p.column = 1
		text = text[strings.LastIndexByte(text, '\n')+1:]
	}
	p.column += utf8.RuneCountInString(text)
}

// expressionLength returns the length of the expression at the beginning of a text, up to the }} after it, or -1.
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

// commentLength returns the length of a comment: to the end of the line or of the
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

// quotedLength returns the length of the quoted text at an offset: in one or three quotes,
// and with escapes, unless it is raw.
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

// isRaw reports whether the text before quotes ends in the prefix of a raw string: an r, alone or with a b.
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

// A Value is JSON that is read only as far as paths lead into it, each part once. It is not
// safe for concurrent use.
type Value struct {
	raw     json.RawMessage // valid
	members map[string]*Value
	items   []*Value
	opened  bool
}

// NewValue returns the Value of valid JSON.
func NewValue(raw json.RawMessage) *Value { return &Value{raw: bytes.TrimSpace(raw)} }

// At returns the value that a path leads to, as JSON, and whether there is one.
func (v *Value) At(p Path) (json.RawMessage, bool) {
	for _, k := range p {
		v.open()
		switch {
		case k.Index < 0 && v.members[k.Name] != nil:
			v = v.members[k.Name]
		case k.Index >= 0 && k.Index < len(v.items):
			v = v.items[k.Index]
		default:
			return nil, false
		}
	}
	return v.raw, true
}

// open reads the members or the items.
func (v *Value) open() {
	if v.opened {
		return
	}
	v.opened = true
	switch v.raw[0] {
	case '{':
		var members map[string]json.RawMessage
		_ = json.Unmarshal(v.raw, &members) // it is a valid object
		v.members = make(map[string]*Value, len(members))
		for name, raw := range members {
			v.members[name] = NewValue(raw)
		}
	case '[':
		var items []json.RawMessage
		_ = json.Unmarshal(v.raw, &items) // it is a valid array
		for _, raw := range items {
			v.items = append(v.items, NewValue(raw))
		}
	}
}

// Text returns a JSON value in the form for a text: a string without quotes, any other value compact.
func Text(raw json.RawMessage) string {
	var s string
	if bytes.HasPrefix(bytes.TrimSpace(raw), []byte(`"`)) && json.Unmarshal(raw, &s) == nil {
		return s
	}
	var b bytes.Buffer
	_ = json.Compact(&b, raw) // it is valid
	return b.String()
}
