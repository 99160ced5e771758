package template

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	opens   = "${{"
	closes  = "}}"
	escape  = '$'
	root    = "input"
	literal = "; write $${{ where a literal ${{ is meant"
)

// An Error says what is wrong at one place of a text.
type Error struct {
	// Line and Column, in characters, count from 1 and are where the ${{ is.
	Line, Column int
	Message      string
}

func (e *Error) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Message) }

// A Path is one place of a text where a value goes, and which.
type Path struct {
	// Line and Column, in characters, count from 1 and are where the ${{ is.
	Line, Column int
	keys         []key
}

// String is the path as it can be written in a text.
func (p Path) String() string { return describe(p.keys) }

func (p Path) wrong(format string, args ...any) *Error {
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

// parse takes a text apart.
func parse(text string) ([]segment, error) {
	var all []segment
	p := position{line: 1, column: 1}
	for {
		at := strings.Index(text, opens)
		if at < 0 {
			return append(all, segment{words: text}), nil
		}
		if at > 0 && text[at-1] == escape {
			all = append(all, segment{words: text[:at-1] + opens})
			p.pass(text[:at+len(opens)])
			text = text[at+len(opens):]
			continue
		}
		p.pass(text[:at])
		s := scanner{rest: text[at+len(opens):]}
		keys, problem := s.path()
		if problem != "" {
			return nil, &Error{Line: p.line, Column: p.column, Message: problem + literal}
		}
		all = append(all, segment{words: text[:at], path: &Path{Line: p.line, Column: p.column, keys: keys}})
		p.pass(text[at : len(text)-len(s.rest)])
		text = s.rest
	}
}

// A position is a place in a text.
type position struct{ line, column int }

// pass goes over what was read.
func (p *position) pass(read string) {
	if n := strings.Count(read, "\n"); n > 0 {
		p.line += n
		p.column = 1
		read = read[strings.LastIndexByte(read, '\n')+1:]
	}
	p.column += utf8.RuneCountInString(read)
}

// A scanner reads the inside of ${{ }}. What is wrong it says in words.
type scanner struct{ rest string }

// space goes over white space.
func (s *scanner) space() { s.rest = strings.TrimLeftFunc(s.rest, unicode.IsSpace) }

// take goes over a word, if it is the next.
func (s *scanner) take(word string) bool {
	s.space()
	rest, ok := strings.CutPrefix(s.rest, word)
	s.rest = rest
	return ok
}

// path reads a path and what closes it.
func (s *scanner) path() (keys []key, problem string) {
	s.space()
	if first := s.word(); first != root {
		return nil, s.expected("a path that begins with input, as in ${{ input.name }}", first)
	}
	for {
		var k key
		switch {
		case s.take(closes):
			return keys, ""
		case s.take("."):
			s.space()
			if k = (key{name: s.word(), index: -1}); k.name == "" {
				return nil, s.expected("a name after the dot", "")
			}
		case s.take("["):
			if k, problem = s.bracket(); problem != "" {
				return nil, problem
			}
		default:
			return nil, s.expected(`.name, [index], ["name"] or }} after `+describe(keys), "")
		}
		keys = append(keys, k)
	}
}

// word reads what can be a name.
func (s *scanner) word() string {
	end := strings.IndexFunc(s.rest, func(r rune) bool { return !inName(r) })
	if end < 0 {
		end = len(s.rest)
	}
	word := s.rest[:end]
	s.rest = s.rest[end:]
	return word
}

// bracket reads what stands between brackets, and the last of them.
func (s *scanner) bracket() (k key, problem string) {
	s.space()
	if strings.HasPrefix(s.rest, `"`) {
		quoted := quotedPrefix(s.rest)
		if quoted == "" || json.Unmarshal([]byte(quoted), &k.name) != nil {
			return k, s.expected(`a name in double quotes after [`, "")
		}
		k.index = -1
		s.rest = s.rest[len(quoted):]
	} else {
		digits := s.word()
		n, err := strconv.ParseUint(digits, 10, 31)
		if err != nil {
			return k, s.expected(`an index or a name in double quotes after [`, digits)
		}
		k.index = int(n)
	}
	if !s.take("]") {
		return k, s.expected("]", "")
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
func (s *scanner) expected(what, read string) string {
	found, _, _ := strings.Cut(read+s.rest, "\n")
	if found == "" {
		return "${{ is not closed by }}: expected " + what
	}
	if runes := []rune(found[:min(len(found), 100)]); len(runes) > 20 {
		found = string(runes[:20]) + "…"
	}
	return fmt.Sprintf("expected %s; found %q", what, found)
}
