package textcall

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
)

var (
	// labelSyntax is a line with the name of a tool, and JSON behind it or on the next line.
	labelSyntax = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile("(?im)^[\\s*_#`/\\[(→>-]*(?:(?:action|tools?|functions?|call|called|calling|using|use|invoke|invoking|running|executing|assistant|name)\\b[\\s:.=*_\"`\\]]*(?:calls?\\b)?[\\s:.=*_\"`\\]]*)*" +
			"([\\w-]+)(?::\\d+)?[\\s:=*_`\"\\]]*(?:\\[ARGS\\])?(?:(?:action[ _]input|inputs?|arguments|args|parameters|params|with|json)\\b[\\s:=*_`]*)*\\{")
	})
	// actionSyntax is an action whose input need not be JSON.
	actionSyntax = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?im)^[\s*_]*action[\s*_]*:[\s*_` + "`" + `"\[]*([\w-]+)[^\n]*\n+[\s*_]*action[ _]input[\s*_]*:[^\n]*`)
	})
	// yamlSyntax is a tool and the first of its arguments in YAML.
	yamlSyntax = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)^(?:tool|tool_name|function|name|action):[ \t]*["']?([\w-]+)["']?[ \t]*\n(?:arguments|args|parameters|input|params):[ \t]*\n[ \t]+([\w-]+):(?:.*\n[ \t]+\S.*)*.*`)
	})
	functionSyntax = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?m)^[ \t]*(?:\[[\w ]{1,40}\]:?[ \t]*)?\[?(?:\w+[ \t]*=[ \t]*)?(?:await[ \t]+)?(?:print\()?(?:\w+\.)?([\w-]+)\(`)
	})
	nextFunction = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^,\s*(?:\w+\.)?[\w-]+\(`)
	})
	keyword = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?:^|,)\s*(\w+)\s*[=:]`)
	})
)

// labeled returns the calls that are a name, often behind a label, and its arguments.
func (f *finder) labeled() []candidate {
	var all []candidate
	for _, m := range labelSyntax().FindAllStringSubmatchIndex(f.text, maxCandidates) {
		name, ok := f.lookup(f.text[m[2]:m[3]])
		if !ok {
			continue
		}
		var args map[string]any
		at := m[1] - 1
		d := json.NewDecoder(strings.NewReader(f.text[at:]))
		if d.Decode(&args) == nil && f.fit(name, slices.Collect(maps.Keys(args))) {
			all = append(all, candidate{name: name, start: m[0] + leading(f.text[m[0]:]), end: at + int(d.InputOffset()), weak: true})
		}
	}
	return append(all, f.namedOnLine()...)
}

// namedOnLine returns the calls whose tool and arguments stand on lines of their own, in
// another form than JSON.
func (f *finder) namedOnLine() []candidate {
	var all []candidate
	for _, m := range actionSyntax().FindAllStringSubmatchIndex(f.text, -1) {
		if name, ok := f.lookup(f.text[m[2]:m[3]]); ok {
			all = append(all, candidate{name: name, marker: "Action Input:", start: m[0] + leading(f.text[m[0]:]), end: m[1], weak: true})
		}
	}
	for _, m := range yamlSyntax().FindAllStringSubmatchIndex(f.text, maxCandidates) {
		name, ok := f.lookup(f.text[m[2]:m[3]])
		if ok && f.offered[name].known[f.text[m[4]:m[5]]] {
			all = append(all, candidate{name: name, start: m[0], end: m[1], weak: true})
		}
	}
	return all
}

// leading returns how many bytes of space a text begins with.
func leading(text string) int { return len(text) - len(strings.TrimLeft(text, " \t\r\n")) }

// functions returns the calls in the form of a function with named arguments.
func (f *finder) functions() []candidate {
	var all []candidate
	for _, m := range functionSyntax().FindAllStringSubmatchIndex(f.text, maxCandidates) {
		name := f.text[m[2]:m[3]]
		if _, ok := f.offered[name]; !ok {
			continue
		}
		inner, ok := insideOf(f.text[m[1]:])
		if !ok || !f.fit(name, argumentNames(inner)) || inner == "" {
			continue
		}
		all = append(all, candidate{name: name, start: m[0] + leading(f.text[m[0]:]), end: f.endOfList(m[1] + len(inner) + 1), weak: true})
	}
	return all
}

// endOfList returns where the list of functions ends whose first ends at a position.
func (f *finder) endOfList(at int) int {
	for {
		m := nextFunction().FindStringIndex(f.text[at:])
		if m == nil {
			return at
		}
		inner, ok := insideOf(f.text[at+m[1]:])
		if !ok {
			return at
		}
		at += m[1] + len(inner) + 1
	}
}

// insideOf returns a text up to the bracket that closes it.
func insideOf(text string) (string, bool) {
	depth, quote := 0, byte(0)
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quote != 0 && c == '\\':
			i++
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'':
			quote = c
		case strings.IndexByte("([{", c) >= 0:
			depth++
		case c == ')' && depth == 0:
			return text[:i], true
		case strings.IndexByte(")]}", c) >= 0:
			depth--
		}
	}
	return "", false
}

// argumentNames returns the names of the arguments of a function: those of a JSON object,
// or of keywords.
func argumentNames(inner string) []string {
	var args map[string]any
	if json.Unmarshal([]byte(inner), &args) == nil {
		return slices.Collect(maps.Keys(args))
	}
	var names []string
	for _, m := range keyword().FindAllStringSubmatch(withoutTexts(inner), -1) {
		names = append(names, m[1])
	}
	return names
}

// withoutTexts removes the content of quotes.
func withoutTexts(code string) string {
	var out strings.Builder
	quote := byte(0)
	for i := 0; i < len(code); i++ {
		switch c := code[i]; {
		case quote != 0 && c == '\\':
			i++
		case quote != 0 && c == quote:
			quote = 0
		case quote != 0:
		case c == '"' || c == '\'':
			quote = c
		default:
			out.WriteByte(c)
		}
	}
	return out.String()
}
