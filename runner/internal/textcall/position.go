package textcall

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// A fence is a block of code in Markdown.
type fence struct {
	start, body, end int // of the opening line, of the content, behind the closing line
	bodyEnd          int
}

// fencesOf returns the blocks of code of a text. A block that is not closed reaches to its
// end.
func fencesOf(text string) []fence {
	var all []fence
	open, mark := false, ""
	for at := 0; at < len(text); {
		end := lineEnd(text, at)
		line := strings.TrimSpace(text[at:end])
		switch {
		case open && strings.HasPrefix(line, mark) && strings.Trim(line, mark[:1]) == "":
			last := &all[len(all)-1]
			last.bodyEnd, last.end, open = at, end, false
		case !open && (strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~")):
			open, mark = true, line[:3]
			all = append(all, fence{start: at, body: end, bodyEnd: len(text), end: len(text)})
		}
		at = end
	}
	return all
}

// lineEnd returns the position behind the line that has a position.
func lineEnd(text string, at int) int {
	if n := strings.IndexByte(text[at:], '\n'); n >= 0 {
		return at + n + 1
	}
	return len(text)
}

// fenceAt returns the block of code that has a position.
func (f *finder) fenceAt(at int) (fence, bool) {
	for _, b := range f.fences {
		if b.body <= at && at < b.bodyEnd {
			return b, true
		}
	}
	return fence{}, false
}

// isCall reports whether a candidate is meant to be executed. It is not if it is within a sentence, a quotation or
// other code, or is shown as an example.
func (f *finder) isCall(c candidate) bool {
	block, fenced := f.fenceAt(c.start)
	start, end := c.start, c.end
	switch {
	case fenced && strings.TrimSpace(f.text[block.body:c.start]) != "":
		return false // a part of other code
	case fenced:
		start, end = block.start, max(block.end, c.end)
	case f.isQuoted(c.start), f.isNested(c.start), f.goesOn(c):
		return false
	}
	before, rest := strings.TrimSpace(f.text[:start]), strings.TrimSpace(f.text[end:])
	closing := isClosing(rest)
	switch {
	case before == "":
		return closing || isResult(rest) || !c.weak
	case c.marker != "" && !fenced && closing:
		return true
	case isDocumented(before), continues(rest):
		return false
	case closing, isResult(rest):
		return true
	}
	return !c.weak && (!fenced || isIntended(before) || isBrief(before) && isBrief(rest))
}

// continues reports whether the text behind a call continues the sentence before it.
func continues(rest string) bool {
	first, _ := utf8.DecodeRuneInString(rest)
	return unicode.IsLower(first)
}

// maxBrief bounds a text around a call that only describes the action of the call, in bytes.
const maxBrief = 160

// isBrief reports whether a text is one short paragraph. Documentation is longer.
func isBrief(text string) bool {
	return len(text) <= maxBrief && !strings.Contains(text, "\n\n") && !strings.Contains(text, "```")
}

// isQuoted reports whether a position is in a quotation or in code within a line.
func (f *finder) isQuoted(at int) bool {
	line := f.lineBefore(at)
	line = strings.TrimSpace(line)
	isRow := strings.HasPrefix(line, "|") && strings.Count(line, "|") > 1 // of a table
	return strings.HasPrefix(line, ">") || isRow || strings.Count(line, "`")%2 == 1
}

// lineBefore returns the part of a line before a position.
func (f *finder) lineBefore(at int) string {
	return f.text[strings.LastIndexByte(f.text[:at], '\n')+1 : at]
}

// isNested reports whether a position is within the brackets of a larger value.
func (f *finder) isNested(at int) bool {
	before := f.text[:at]
	open := strings.Count(before, "{") - strings.Count(before, "}")
	return open > 0
}

// goesOn reports whether a candidate is in the middle of a sentence.
func (f *finder) goesOn(c candidate) bool {
	if strings.TrimSpace(f.lineBefore(c.start)) == "" {
		return false
	}
	after := f.text[c.end:lineEnd(f.text, min(c.end, len(f.text)))]
	return !isClosing(strings.TrimSpace(after))
}

// isClosing reports whether only the ends of markup and code follow a call.
func isClosing(rest string) bool {
	return closers().MatchString(rest)
}

var closers = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile("^(?:\\s|[)\\]}|`]|</[^<>\n]*>|<[|｜][^<>\n]*>|<\\w*\\|>|\\[/\\w+\\])*$")
})

// isResult reports whether an invented result of the call follows.
func isResult(rest string) bool {
	for _, t := range tagsOf(rest[:min(len(rest), 200)]) {
		if t.result && strings.TrimSpace(rest[:t.start]) == "" {
			return true
		}
	}
	return labeledResult().MatchString(rest)
}

var labeledResult = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^[\s*_#\[(-]*(?:observations?|(?:tool|function|call)?[ _-]*(?:results?|responses?|outputs?|returned))[\s*_\])]*:`)
})

// isDocumented reports whether the text before a call introduces it as an example.
func isDocumented(before string) bool {
	intro := introOf(before)
	return example().MatchString(intro) && !isIntended(before)
}

// isIntended reports whether the text before a call announces the call.
func isIntended(before string) bool {
	intro := introOf(before)
	return intent().MatchString(intro) && !showing().MatchString(intro)
}

// maxIntro bounds how much of the text before a call introduces it, in bytes.
const maxIntro = 300

// introOf returns the last sentence of a text.
func introOf(before string) string {
	line := before[strings.LastIndexByte(before, '\n')+1:]
	line = line[max(len(line)-maxIntro, 0):]
	for _, end := range []string{". ", "! ", "? "} {
		if at := strings.LastIndex(line, end); at >= 0 {
			line = line[at+len(end):]
		}
	}
	return line
}

var (
	// intent matches announcements of an action: in the first person, not in the past.
	intent = sync.OnceValue(func() *regexp.Regexp {
		const act = `(?:write|read|run|call|use|create|make|check|look|open|list|search|execute|invoke|edit|fetch|start|try|add|save|update|delete|need|will|shall|must|should|can|am)`
		return regexp.MustCompile(`(?i)\b(?:(?:I|we)(?:'ll|’ll|'m|’m)|(?:I|we)\s+(?:now\s+|first\s+|then\s+)?` + act + `|let me|let's|let’s|let us|(?:next|now|first),?\s+(?:I|we|let)|` +
			`here(?: is|'s|’s) the (?:tool |function )?call|calling|using|executing|running)\b|\b(?:ich|je|yo|voy a|vamos a|ahora|jetzt|maintenant|adesso|vou|agora)\b|我|正在|现在|これから|сейчас|теперь`)
	})
	// showing and reporting match texts that show a call without making it.
	showing = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)\b(?:looks? like|shows?|illustrates?|demonstrates?|explains?|documents?|enthält|lautet|contiene|contient|contém)\b|содержит`)
	})
	example = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)\b(?:examples?|e\.g|for instance|such as|looks? like|like (?:this|so)|as follows|syntax|format|schema|template|snippet|payload|tool[ -]?calls?|function[ -]?calls?|calls? (?:of|to|for|with|by)|a call|emit(?:s|ted)?|wrote|writes|answer(?:s|ed|ing)?|instead of|means|` +
			`says?|said|sends?|sent|contains?|contained|has|had|reads|misses|missed|received?|returns|returned|logs?|logged|traces?|transcripts?|recorded|prompts?|callers?|clients?|users?)\b|Beispiel|enthält|lautet|ejemplo|contiene|contient|contém|esempio|示例|例如|пример|содержит`)
	})
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

// namedOnLine returns the calls whose tool and arguments are on separate lines, in a form other than JSON.
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

// endOfList returns the end of a list of functions. at is the end of its first function.
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

// argumentNames returns the names of the arguments of a function: the members of a JSON object, or the keywords.
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
