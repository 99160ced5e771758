package textcall

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// A tag is a tag of XML, or a special token of a chat template.
type tag struct {
	start, end int
	name       string // the letters of its name, in lower case
	rest       string // its attributes
	closing    bool
	// marker means that a call follows, result that a result follows.
	marker, result bool
}

var tagSyntax = sync.OnceValue(func() *regexp.Regexp {
	// "<tool_call>", "<|tool_call_begin|>", "<｜tool▁sep｜>", "</invoke>", "</｜DSML｜invoke>", "[TOOL_CALLS]", "[/TOOL_CALLS]"
	return regexp.MustCompile(`</?(?:[|｜]\w+[|｜]|[|｜])?(/?[A-Za-z_][\w:.▁-]*)([^<>\n]{0,200}?)[|｜]?/?>|\[(/?[A-Z][A-Z_]{3,30})\]`)
})

// markers and results are names of tags before a call and before a result, without further meaning.
var (
	markers = []string{"tool", "tools", "function", "functions", "call", "calls", "action", "plugin"}
	results = []string{"result", "results", "response", "output"}
)

// tagsOf returns the tags of a text.
func tagsOf(text string) []tag {
	var all []tag
	for _, m := range tagSyntax().FindAllStringSubmatchIndex(text, -1) {
		t := tag{start: m[0], end: m[1]}
		group := 2
		if m[group] < 0 {
			group = 6 // in square brackets
		} else {
			t.rest = text[m[4]:m[5]]
		}
		raw := text[m[group]:m[group+1]]
		t.name = letters(raw)
		t.closing = strings.Contains(text[m[0]:m[group]+1], "/") || strings.HasSuffix(t.name, "end") || strings.HasPrefix(t.name, "end")
		t.result = hasAny(t.name, "toolresponse", "toolresult", "tooloutput", "functionresult", "functionresponse", "functionoutput", "observation", "callresult") ||
			slices.Contains(results, t.name)
		t.marker = !t.result && (slices.Contains(markers, t.name) ||
			hasAny(t.name, "toolcall", "functioncall", "tooluse", "toolcode", "toolsep", "toolname", "toolrequest", "usetool", "executetool", "invoke", "pythontag", "startaction", "actionstart"))
		all = append(all, t)
	}
	return all
}

// letters returns the letters of a name in lower case, because templates differ in the separators.
func letters(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z':
			return r
		case 'A' <= r && r <= 'Z':
			return r - 'A' + 'a'
		}
		return -1
	}, name)
}

func hasAny(name string, parts ...string) bool {
	for _, part := range parts {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// markup returns the calls in the markup of a chat template.
func (f *finder) markup() []candidate {
	var all []candidate
	tags := tagsOf(f.text)
	for i, t := range tags {
		if t.closing || t.result || len(all) == maxCandidates {
			continue
		}
		name, ok := f.namedElement(tags[i:])
		if !ok && t.marker {
			name, ok = f.nameIn(t)
		}
		if !ok {
			continue
		}
		start := firstOf(f.text, tags[:i+1])
		all = append(all, candidate{name: name, marker: f.text[start.start:start.end], start: start.start, end: f.endOfMarkup(tags[i:], name)})
	}
	return append(all, f.recipients()...)
}

// firstOf returns the first of consecutive markers directly before the last tag; without markers, the last tag.
func firstOf(text string, tags []tag) tag {
	at := len(tags) - 1
	for at > 0 && tags[at-1].marker && !tags[at-1].closing && strings.TrimSpace(text[tags[at-1].end:tags[at].start]) == "" {
		at--
	}
	return tags[at]
}

var (
	nameAttribute = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?:\bname\s*=\s*|^\s*=\s*)["']?([\w.-]+)`)
	})
	nameBehind = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile("^\\s*(?:```\\w*\\s*)?\\[?(?:(?:functions?|call|tool|name)[:\\s]+|<name>\\s*)*([\\w.-]+)(?::\\d+)?\\s*(?:[{(\\[<｜\\n`]|$)")
	})
	bodyBehind = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile("^[ \\t\r]*(?:[<{\\[]|\n\\s*\\S)")
	})
	valueBehind = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile("^\\s*(?:```\\w*\\s*)?(?:[\\[{]|<name>)")
	})
	attribute = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\s([\w.-]+)\s*=\s*["']`) })
	nameKey   = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`["'](?:name|tool|tool_name|function|function_name|action|recipient_name)["']\s*:\s*["']([\w.-]+)["']`)
	})
)

// nameIn returns the tool that a marker names, in itself or in the JSON or text behind it.
func (f *finder) nameIn(t tag) (string, bool) {
	if m := nameAttribute().FindStringSubmatch(t.rest); m != nil {
		name, ok := f.lookup(m[1])
		hasArguments := strings.Count(t.rest, "=") > 1 || bodyBehind().MatchString(f.text[t.end:])
		return name, ok && hasArguments // else a sentence is about the tag
	}
	rest := f.text[t.end:]
	if m := nameBehind().FindStringSubmatch(rest); m != nil {
		name := strings.TrimSuffix(m[1], ".call")
		if found, ok := f.lookup(name); ok {
			return found, true
		}
	}
	if !valueBehind().MatchString(rest) {
		return "", false
	}
	if next := strings.Index(rest, "</"); next >= 0 {
		rest = rest[:next]
	}
	for _, m := range nameKey().FindAllStringSubmatch(rest, 8) {
		if name, ok := f.lookup(m[1]); ok {
			return name, true
		}
	}
	return "", false
}

// namedElement returns the tool for an element with its name whose child elements, or attributes, are named like the
// tool's parameters.
func (f *finder) namedElement(tags []tag) (string, bool) {
	t := tags[0]
	if name, _, hasAttributes := strings.Cut(f.text[t.start+1:t.end], " "); hasAttributes {
		if p, known := f.offered[name]; known {
			return name, slices.ContainsFunc(attribute().FindAllStringSubmatch(t.rest, -1), func(m []string) bool { return p.known[m[1]] })
		}
	}
	raw := strings.TrimSuffix(strings.Trim(f.text[t.start:t.end], "<>"), "/")
	p, known := f.offered[raw]
	if !known || len(tags) < 2 || tags[1].closing || strings.TrimSpace(f.text[t.end:tags[1].start]) != "" {
		return "", false
	}
	return raw, p.known[strings.Trim(f.text[tags[1].start:tags[1].end], "<>")]
}

// recipients returns the calls that name the tool as the recipient of a message.
func (f *finder) recipients() []candidate {
	var all []candidate
	for _, m := range recipient().FindAllStringSubmatchIndex(f.text, -1) {
		if name, ok := f.lookup(f.text[m[2]:m[3]]); ok {
			all = append(all, candidate{name: name, marker: "to=functions.", start: m[0], end: len(f.text)})
		}
	}
	return all
}

var recipient = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?:<\|[\w|<>]*\|>|\b)(?:assistant|commentary|analysis)*\s*(?:<\|[\w]*\|>)?\s*to=functions\.([\w-]+)`)
})

// endOfMarkup returns where the markup ends that the first of the tags opens: behind the
// last tag of calls, parameters and results, and the value that follows an opening one.
func (f *finder) endOfMarkup(tags []tag, name string) int {
	last := tags[0]
	for _, t := range tags {
		if t.marker || t.result || strings.HasPrefix(t.name, "param") || strings.HasPrefix(t.name, "arg") || t.name == "input" || t.name == "name" ||
			strings.EqualFold(strings.Trim(f.text[t.start:t.end], "</>"), name) {
			last = t
		}
	}
	if last.closing {
		return last.end
	}
	rest := f.text[last.end:]
	at := strings.IndexAny(rest, "[{")
	if at < 0 {
		return len(f.text)
	}
	d := json.NewDecoder(strings.NewReader(rest[at:]))
	if d.Decode(new(any)) != nil {
		return len(f.text)
	}
	return last.end + at + int(d.InputOffset())
}
