// Package textcall recognizes tool calls that a model wrote as text.
//
// A server whose parser of tool calls is off, or a model that was not trained for it, gives such an answer: nothing was
// executed, and the text looks like a final answer. A text counts as a call only if it names an offered tool in a
// syntax of calls: in the markup of a chat template (markup.go), in a JSON object (object.go), or after a label or in
// the form of a function (position.go). The position distinguishes a call from an example (position.go): an answer with
// a call as text ends with it, or continues with an invented result. IsRequested recognizes that the prompt asked to
// see a call. Directly after a notice that nothing was executed, more forms count as calls (FindAgain).
//
// It has no I/O.
package textcall

import (
	"encoding/json"
	"html"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/deckhand-dev/deckhand/runner/step"
)

// A Call is a tool call that a text has.
type Call struct {
	// Name is the name of the tool, as it is offered.
	Name string
	// text is the call as it was written, and marker the tag that opens it; empty: there is none.
	text, marker string
}

// maxCandidates bounds how many parts of a text are looked at for each kind of syntax.
const maxCandidates = 32

// A candidate is a part of a text that has the form of a call.
type candidate struct {
	name       string
	marker     string // the tag that opens it; empty: none
	start, end int
	// weak reports that prose and code can have this form too: such a call must be at the end of the text, or continue
	// with an invented result.
	weak bool
}

// Find returns the call of an offered tool in the text, or false.
func Find(text string, tools []step.Tool) (Call, bool) {
	text = ends(text)
	if !strings.Contains(text, "<") {
		text = html.UnescapeString(text)
	}
	if !strings.ContainsAny(text, "<[{(:") || !namesAny(text, tools) {
		return Call{}, false
	}
	f := finder{text: text, fences: fencesOf(text), offered: offeredOf(tools)}
	var seen []candidate
	for _, find := range []func() []candidate{f.markup, f.objects, f.labeled, f.functions} {
		for _, c := range find() {
			if slices.ContainsFunc(seen, c.isWithin) {
				continue // the JSON in a markup
			}
			if f.isCall(c) {
				return Call{Name: c.name, text: text[c.start:c.end], marker: c.marker}, true
			}
			seen = append(seen, c)
		}
	}
	return Call{}, false
}

// maxText bounds how much of a text is searched, in bytes: far more than a model writes at once.
const maxText = 256 << 10

// ends returns a text, or the beginning and the end of a long one: a call begins in the one
// or ends in the other.
func ends(text string) string {
	if len(text) <= maxText {
		return text
	}
	return text[:maxText/2] + "\n" + text[len(text)-maxText/2:]
}

// namesAny reports whether a text has the name of a tool, in any case of letters.
func namesAny(text string, tools []step.Tool) bool {
	text = strings.ToLower(text)
	return slices.ContainsFunc(tools, func(t step.Tool) bool { return strings.Contains(text, strings.ToLower(t.Name)) })
}

// isWithin reports whether a candidate is a part of another.
func (c candidate) isWithin(other candidate) bool {
	return other.start <= c.start && c.start < other.end
}

// A finder looks for calls in one text.
type finder struct {
	text    string
	fences  []fence
	offered map[string]parameters
}

// parameters are the parameters of a tool.
type parameters struct {
	known    map[string]bool
	required []string
}

func offeredOf(tools []step.Tool) map[string]parameters {
	offered := make(map[string]parameters, len(tools))
	for _, t := range tools {
		var input struct {
			Properties map[string]json.RawMessage `json:"properties"`
			Required   []string                   `json:"required"`
		}
		_ = json.Unmarshal(t.Input, &input) // a schema without properties takes any
		p := parameters{known: map[string]bool{}, required: input.Required}
		for name := range input.Properties {
			p.known[name] = true
		}
		offered[t.Name] = p
	}
	return offered
}

// lookup returns the offered tool that a call means: models write its name with the
// namespace of a template before it, or in another case.
func (f *finder) lookup(name string) (string, bool) {
	name = strings.Trim(name, ".")
	for {
		if _, known := f.offered[name]; known {
			return name, true
		}
		for offered := range f.offered {
			if strings.EqualFold(offered, name) {
				return offered, true
			}
		}
		_, rest, more := strings.Cut(name, ".")
		if !more {
			return "", false
		}
		name = rest
	}
}

// fit reports whether arguments with these names can belong to a tool: they include all required ones, or all of them
// are its own. A tool without parameters accepts none.
func (f *finder) fit(tool string, names []string) bool {
	p := f.offered[tool]
	if len(names) == 0 {
		return len(p.required) == 0
	}
	known := 0
	given := map[string]bool{}
	for _, name := range names {
		given[name] = true
		if p.known[name] {
			known++
		}
	}
	missing := 0
	for _, name := range p.required {
		if !given[name] {
			missing++
		}
	}
	return known > 0 && (missing == 0 || known == len(given))
}

// unnamed replaces the name of the tool if a call has no known name.
const unnamed = "a tool"

// FindAgain returns the call in a text whose model was just told that its last one was not executed. Then any markup of
// a call counts, with any tool name and at any position, and so does a script that the model says to run.
func FindAgain(text string, tools []step.Tool) (Call, bool) {
	if call, ok := Find(text, tools); ok {
		return call, true
	}
	text = ends(text)
	f := finder{text: text, fences: fencesOf(text), offered: offeredOf(tools)}
	for _, find := range []func() (int, bool){f.anyMarkup, f.anyObject, f.script} {
		if at, ok := find(); ok {
			return Call{Name: unnamed, text: text[at:]}, true
		}
	}
	return Call{}, false
}

var (
	// elementStart matches what follows an XML tag, as opposed to a word in a sentence.
	elementStart = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile("^(?:[ \t\r]*[<{\\[`]|\\s*\n\\s*\\S|\\s*[\\w.-]+\\s*[\n{(<])")
	})
	anyCall = sync.OnceValue(func() *regexp.Regexp {
		const name = `["'](?:name|tool|tool_?name|function|function_?name|action|recipient_name)["']\s*:\s*["'][\w.: -]+["']`
		const arguments = `["'](?:arguments|args|parameters|input|action_?input|tool_?input|params|kwargs)["']\s*:`
		return regexp.MustCompile(`(?i)\{\s*(?:` + name + `[^{}\[\]]*,\s*` + arguments + `|` + arguments + `)`)
	})
	scriptLanguage = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile("(?i)^[`~]{3,}[ \t]*(?:ba|z|k|fi)?(?:sh|shell|console|terminal|powershell|python3?|py|tool_code|execute\\w*)\\b")
	})
	announced = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?i)\b(?:calling|executing|invoking|running|creating|writing|saving|I'll|I’ll|I will|I'm going|I am going|let me|let's|let’s|` +
			`jetzt|ich (?:rufe|führe|schreibe|erstelle|lege)|je vais|voy a|ahora|maintenant)\b|正在|现在|сейчас`)
	})
	fileScript = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?:>|\btee\b)[^\n]*<<|<<[^\n]*>`) })
)

// anyMarkup returns the position of a tag of calls, outside of inline code.
func (f *finder) anyMarkup() (int, bool) {
	for _, t := range tagsOf(f.text) {
		called := t.result && t.name != "result" && t.name != "results" && t.name != "response" && t.name != "output"
		if !t.marker && !called && !strings.HasPrefix(t.name, "executebash") || t.closing || f.isMentioned(t.start) {
			continue
		}
		isToken := strings.ContainsAny(f.text[t.start:t.start+2], "[|") || strings.HasPrefix(f.text[t.start:], "<｜")
		if isToken || strings.Contains(t.rest, "=") || elementStart().MatchString(f.text[t.end:]) {
			return t.start, true
		}
	}
	return 0, false
}

// anyObject returns where an object in JSON or Python has the name and the arguments of a
// call.
func (f *finder) anyObject() (int, bool) {
	for _, m := range anyCall().FindAllStringIndex(f.text, maxCandidates) {
		if f.isMentioned(m[0]) {
			continue
		}
		if strings.Count(f.text[m[0]:m[1]], ":") > 1 || f.hasName(m[0]) {
			return m[0], true
		}
	}
	return 0, false
}

// hasName reports whether the JSON object at a position, which begins with arguments, also has a name.
func (f *finder) hasName(at int) bool {
	var object map[string]any
	if json.NewDecoder(strings.NewReader(f.text[at:])).Decode(&object) != nil {
		return false
	}
	name, is := object[firstKey(object, nameKeys)].(string)
	return is && name != ""
}

// isMentioned reports whether a position is in a quotation or in code within a line of
// prose.
func (f *finder) isMentioned(at int) bool {
	_, fenced := f.fenceAt(at)
	return !fenced && f.isQuoted(at)
}

// script returns the position of a script that the model says to run, or whose result it invents.
func (f *finder) script() (int, bool) {
	for _, b := range f.fences {
		if !scriptLanguage().MatchString(strings.TrimSpace(f.text[b.start:b.body])) {
			continue
		}
		before := strings.TrimSpace(f.text[:b.start])
		intro := introOf(before)
		runs := announced().MatchString(intro) && !showing().MatchString(intro) ||
			isResult(strings.TrimSpace(f.text[b.end:])) ||
			before == "" && fileScript().MatchString(f.text[b.body:b.bodyEnd])
		if runs {
			return b.start, true
		}
	}
	return 0, false
}
