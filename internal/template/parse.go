package template

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

const root = "input"

// An Error says what is wrong at one place of a text.
type Error struct {
	// Line and Column, in characters, count from 1 and are where the ${{ is.
	Line, Column int
	Message      string

	rest string // of the text, from the ${{ on
}

func (e *Error) Error() string {
	if e.Line > 1 {
		return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
	}
	return fmt.Sprintf("column %d: %s", e.Column, e.Message)
}

// Rest is the text from an unclosed ${{ on.
func (e *Error) Rest() string { return e.rest }

// A Path is one place of a text where a value goes, and which.
type Path struct {
	// Line and Column, in characters, count from 1 and are where the ${{ is.
	Line, Column int
	keys         []key
}

// String is the path as it can be written in a text.
func (p Path) String() string { return describe(p.keys) }

func (p Path) errorf(format string, args ...any) *Error {
	return &Error{Line: p.Line, Column: p.Column, Message: fmt.Sprintf(format, args...)}
}

// A key is a step of a path: the name of a member or the index of an item.
type key struct {
	name  string
	index int // -1 for a name
}

func describe(keys []key) string {
	var b strings.Builder
	b.WriteString(root)
	for _, k := range keys {
		switch {
		case k.index >= 0:
			fmt.Fprintf(&b, "[%d]", k.index)
		case plain(k.name):
			b.WriteString("." + k.name)
		default:
			quoted, _ := json.Marshal(k.name) // a string: cannot fail
			fmt.Fprintf(&b, "[%s]", quoted)
		}
	}
	return b.String()
}

// plain says whether a name can stand after a dot.
func plain(name string) bool {
	return name != "" && strings.IndexFunc(name, func(r rune) bool { return !inName(r) }) < 0
}

func inName(r rune) bool { return r == '_' || r == '-' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// A segment is a piece of a text: words, and then the value of a path, if any.
type segment struct {
	words string
	path  *Path
}

// parse divides a text at its paths.
func parse(text string) ([]segment, error) {
	parts, err := Scan(text)
	if err != nil {
		return nil, err
	}
	all := make([]segment, 0, len(parts))
	for _, part := range parts {
		if !part.HasExpression {
			all = append(all, segment{words: part.Words})
			continue
		}
		p := pathParser{rest: part.Expression + closes}
		keys, problem := p.path()
		if problem != "" {
			return nil, &Error{Line: part.Line, Column: part.Column, Message: problem + literal}
		}
		all = append(all, segment{words: part.Words, path: &Path{Line: part.Line, Column: part.Column, keys: keys}})
	}
	return all, nil
}

// A pathParser parses the expression in ${{ }}. Its methods return what is wrong as
// text.
type pathParser struct{ rest string }

// space goes over white space.
func (p *pathParser) space() { p.rest = strings.TrimLeftFunc(p.rest, unicode.IsSpace) }

// take goes over a word, if it is the next.
func (p *pathParser) take(word string) bool {
	p.space()
	rest, ok := strings.CutPrefix(p.rest, word)
	p.rest = rest
	return ok
}

// path reads a path and what closes it.
func (p *pathParser) path() (keys []key, problem string) {
	p.space()
	if first := p.word(); first != root {
		return nil, p.expected("a path that begins with input, as in ${{ input.name }}", first)
	}
	for {
		var k key
		switch {
		case p.take(closes):
			return keys, ""
		case p.take("."):
			p.space()
			if k = (key{name: p.word(), index: -1}); k.name == "" {
				return nil, p.expected("a name after the dot", "")
			}
		case p.take("["):
			if k, problem = p.bracket(); problem != "" {
				return nil, problem
			}
		default:
			return nil, p.expected(`.name, [index], ["name"] or }} after `+describe(keys), "")
		}
		keys = append(keys, k)
	}
}

// word reads what can be a name.
func (p *pathParser) word() string {
	end := strings.IndexFunc(p.rest, func(r rune) bool { return !inName(r) })
	if end < 0 {
		end = len(p.rest)
	}
	word := p.rest[:end]
	p.rest = p.rest[end:]
	return word
}

// bracket reads what stands between brackets, and the last of them.
func (p *pathParser) bracket() (k key, problem string) {
	p.space()
	if strings.HasPrefix(p.rest, `"`) {
		quoted := quotedPrefix(p.rest)
		if quoted == "" || json.Unmarshal([]byte(quoted), &k.name) != nil {
			return k, p.expected(`a name in double quotes after [`, "")
		}
		k.index = -1
		p.rest = p.rest[len(quoted):]
	} else {
		digits := p.word()
		n, err := strconv.ParseUint(digits, 10, 31)
		if err != nil {
			return k, p.expected(`an index or a name in double quotes after [`, digits)
		}
		k.index = int(n)
	}
	if !p.take("]") {
		return k, p.expected("]", "")
	}
	return k, ""
}

// quotedPrefix is the JSON string that a text begins with, if it does.
func quotedPrefix(text string) string {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return text[:i+1]
		}
	}
	return ""
}

// expected says what should have come instead of what did: read, and what is
// next.
func (p *pathParser) expected(what, read string) string {
	found, _, _ := strings.Cut(read+p.rest, "\n")
	if runes := []rune(found[:min(len(found), 100)]); len(runes) > 20 {
		found = string(runes[:20]) + "…"
	}
	return fmt.Sprintf("expected %s; found %q", what, found)
}
