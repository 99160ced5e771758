package textcall

import (
	"encoding/json"
	"regexp"
	"strings"
	"sync"

	"github.com/deckhand-dev/deckhand/runner/step"
)

// unnamed stands for the name of the tool where a call has none that is known.
const unnamed = "a tool"

// FindAgain returns the call that a text makes whose model was just told that its last one
// was not executed: then any markup of a call is one, whichever tool it names and wherever
// it stands, and so is a script that the model says to run.
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
	// elementStart is what stands behind a tag of XML that is not a word in a sentence.
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

// anyMarkup returns where a tag of calls stands, outside of code within a line.
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

// hasName reports whether the JSON object at a position, which begins with arguments, has a
// name, too.
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

// script returns where a script stands that the model says to run, or whose result it
// invents.
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
