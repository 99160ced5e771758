// Package template finds the expressions in ${{ }} in a text, and evaluates paths without CEL. Package inputtext
// replaces them by values.
package template

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
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

// isPlain reports whether a name can follow a dot.
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

// word reads a name.
func (p *pathParser) word() string {
	end := strings.IndexFunc(p.rest, func(r rune) bool { return !inName(r) })
	if end < 0 {
		end = len(p.rest)
	}
	word := p.rest[:end]
	p.rest = p.rest[end:]
	return word
}

// bracket reads the key between brackets, and the closing bracket.
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

// quotedPrefix returns the JSON string at the beginning of a text, or an empty text.
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

// Similar returns a suggestion, to append to a message about a wrong name, of the most similar of names; empty: none is
// similar.
func Similar(name string, names []string) string {
	best, most := "", 1+len(name)/4
	for _, n := range names {
		if d := EditDistance(name, n); d <= most {
			best, most = n, d-1
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", best)
}

// EditDistance returns how many bytes must be added, removed or replaced to turn one name into another. For names of
// more than 64 bytes it is not computed: they count as different in every byte.
func EditDistance(from, to string) int {
	if len(from) > 64 || len(to) > 64 {
		return max(len(from), len(to))
	}
	row := make([]int, len(to)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(from) {
		before := row[0]
		row[0] = i + 1
		for j := range len(to) {
			replaced := before
			if from[i] != to[j] {
				replaced++
			}
			before = row[j+1]
			row[j+1] = min(replaced, before+1, row[j]+1)
		}
	}
	return row[len(to)]
}

// A Foreign is a reference in the syntax of another tool. Here it is text.
type Foreign struct {
	Text         string // {{ parameters.x }}
	Path         []string
	Line, Column int // of its first character, from 1
}

// foreign matches {{ x.y }} as in Argo Workflows, $(params.x) as in Tekton, and ${input.x}, which
// lacks a brace. Such a name with a dot is no variable of a shell.
var foreign = regexp.MustCompile(`\{\{-?\s*=?\s*\.?([A-Za-z_][\w-]*(?:\.[\w-]+)*)\s*-?\}\}` +
	`|\$\(((?:params|inputs?|parameters|tasks|steps|context|workspaces)\.[\w.-]+)\)` +
	`|\$\{\s*((?:params|inputs?|parameters|tasks|steps|nodes|item|run|self|previous)\.[\w.-]+)\s*\}`)

// FindForeign returns the references in the syntax of another tool.
func FindForeign(text string) []Foreign {
	var out []Foreign
	for _, at := range foreign.FindAllStringSubmatchIndex(text, -1) {
		if at[0] > 0 && text[at[0]-1] == '$' { // ${{ x }}, or $${{ x }} for that text
			continue
		}
		from, to := at[2], at[3]
		for group := 4; from < 0; group += 2 {
			from, to = at[group], at[group+1]
		}
		before := text[:at[0]]
		out = append(out, Foreign{
			Text:   text[at[0]:at[1]],
			Path:   strings.Split(strings.Trim(text[from:to], "."), "."),
			Line:   1 + strings.Count(before, "\n"),
			Column: 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]),
		})
	}
	return out
}

// ForeignWarning warns about references of another tool in a text for a model, with what to write; empty: it has none.
func ForeignWarning(field, text string) string {
	found := FindForeign(text)
	if len(found) == 0 {
		return ""
	}
	f := found[0]
	where := fmt.Sprintf("column %d", f.Column)
	if f.Line > 1 {
		where = fmt.Sprintf("line %d, %s", f.Line, where)
	}
	return fmt.Sprintf("%s: %s: %s is sent to the model as text; write ${{ input.%s }}%s", field, where, f.Text, f.Name(), OtherForeign(found))
}

// OtherForeign names the references after the first, each once; empty: there are none.
func OtherForeign(found []Foreign) string {
	const most = 5
	var names []string
	for _, f := range found {
		if !slices.Contains(names, f.Text) {
			names = append(names, f.Text)
		}
	}
	if names = names[1:]; len(names) > most {
		names = append(names[:most], fmt.Sprintf("%d more", len(names)-most))
	}
	if len(names) == 0 {
		return ""
	}
	return "; the same for " + strings.Join(names, ", ")
}

// Name returns the last part of the path: the name of a value.
func (f Foreign) Name() string { return f.Path[len(f.Path)-1] }
