package template

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

const root = "input"

// A Path is an expression that selects a value of the input: the word input, and then any
// number of .name, ["name"] and [index]. Unlike in CEL, a name after a dot may have hyphens
// and letters of all alphabets.
type Path []Key

// A Key is a step of a Path: the name of a member or the index of an item.
type Key struct {
	Name  string
	Index int // -1 for a name
}

// String returns the path as it can be written in an expression.
func (p Path) String() string {
	var b strings.Builder
	b.WriteString(root)
	for _, k := range p {
		switch {
		case k.Index >= 0:
			fmt.Fprintf(&b, "[%d]", k.Index)
		case isPlain(k.Name):
			b.WriteString("." + k.Name)
		default:
			quoted, _ := json.Marshal(k.Name) // a string: cannot fail
			fmt.Fprintf(&b, "[%s]", quoted)
		}
	}
	return b.String()
}

// isPlain reports whether a name can stand after a dot.
func isPlain(name string) bool {
	return name != "" && strings.IndexFunc(name, func(r rune) bool { return !inName(r) }) < 0
}

func inName(r rune) bool { return r == '_' || r == '-' || unicode.IsLetter(r) || unicode.IsDigit(r) }

// inBackticks matches the names that CEL takes in backticks.
var inBackticks = regexp.MustCompile(`^[a-zA-Z0-9_.\-/ ]+$`)

// CEL returns the path as an expression of CEL; false: CEL has no way to write a name in it.
func (p Path) CEL() (string, bool) {
	var b strings.Builder
	b.WriteString(root)
	for _, k := range p {
		switch {
		case k.Index >= 0:
			fmt.Fprintf(&b, "[%d]", k.Index)
		case inBackticks.MatchString(k.Name):
			fmt.Fprintf(&b, ".`%s`", k.Name)
		default:
			return "", false
		}
	}
	return b.String(), true
}

// ParsePath returns the path that an expression is; false: it is another expression.
func ParsePath(expression string) (Path, bool) {
	p := pathParser{rest: expression}
	if p.space(); p.word() != root {
		return nil, false
	}
	path := Path{}
	for {
		var k Key
		var ok bool
		switch {
		case p.take("."):
			p.space()
			k = Key{Name: p.word(), Index: -1}
			ok = k.Name != ""
		case p.take("["):
			k, ok = p.bracket()
		default:
			return path, p.rest == ""
		}
		if !ok {
			return nil, false
		}
		path = append(path, k)
	}
}

// A pathParser parses an expression.
type pathParser struct{ rest string }

// space skips white space.
func (p *pathParser) space() { p.rest = strings.TrimLeftFunc(p.rest, unicode.IsSpace) }

// take skips a mark, if it is the next.
func (p *pathParser) take(mark string) bool {
	p.space()
	rest, ok := strings.CutPrefix(p.rest, mark)
	p.rest = rest
	return ok
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
func (p *pathParser) bracket() (Key, bool) {
	p.space()
	k := Key{Index: -1}
	if strings.HasPrefix(p.rest, `"`) {
		quoted := quotedPrefix(p.rest)
		if quoted == "" || json.Unmarshal([]byte(quoted), &k.Name) != nil {
			return k, false
		}
		p.rest = p.rest[len(quoted):]
	} else {
		n, err := strconv.ParseUint(p.word(), 10, 31)
		if err != nil {
			return k, false
		}
		k.Index = int(n)
	}
	return k, p.take("]")
}

// quotedPrefix returns the JSON string that a text begins with; empty: it begins with none.
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
