package textcall

import (
	"encoding/json"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
)

var (
	objectStart = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`[\[{][\s\[{]*["'][\w.-]+["']\s*:`)
	})
	brokenCall = sync.OnceValue(func() *regexp.Regexp {
		const quote = `\\?["']`
		return regexp.MustCompile(`^[\s\[{]*` + quote + `(?:name|tool|tool_name|function|action)` + quote + `\s*:\s*` + quote + `([\w.-]+)` + quote + `\s*,\s*` +
			quote + `(?:arguments|args|parameters|input|action_input|params)` + quote + `\s*:\s*"?\{\s*` + quote + `(\w+)` + quote + `\s*:`)
	})
)

// objects returns the calls that are JSON objects, or arrays of them.
func (f *finder) objects() []candidate {
	var all []candidate
	end := 0
	for _, m := range objectStart().FindAllStringIndex(f.text, maxCandidates) {
		if m[0] < end {
			continue // a part of the last
		}
		rest := f.text[m[0]:]
		d := json.NewDecoder(strings.NewReader(rest))
		var value any
		if d.Decode(&value) != nil {
			if c, ok := f.broken(rest, m[0]); ok {
				all = append(all, c)
			}
			continue
		}
		end = m[0] + int(d.InputOffset())
		if name := f.calledBy(value); name != "" {
			all = append(all, candidate{name: name, start: m[0], end: end})
		}
	}
	return all
}

// broken returns the call that begins a text whose JSON is cut or has errors.
func (f *finder) broken(rest string, at int) (candidate, bool) {
	m := brokenCall().FindStringSubmatch(rest)
	if m == nil {
		return candidate{}, false
	}
	name, ok := f.lookup(m[1])
	return candidate{name: name, start: at, end: len(f.text)}, ok && f.offered[name].known[m[2]]
}

// calledBy returns the tool that a JSON value calls; empty: it is no call.
func (f *finder) calledBy(value any) string {
	switch v := value.(type) {
	case []any:
		name := ""
		for _, one := range v {
			called := f.calledBy(one)
			if called == "" {
				return ""
			}
			name = called
		}
		return name
	case map[string]any:
		return f.calledByObject(v)
	}
	return ""
}

var (
	nameKeys     = []string{"name", "tool", "toolname", "functionname", "function", "action", "recipientname"}
	argumentKeys = []string{"arguments", "args", "parameters", "input", "actioninput", "toolinput", "params", "kwargs"}
	// Keys are compared by their letters, because some models write tool_name, others toolName. besideKeys may occur in
	// addition to name and arguments. An object with any other key is not a call but, for example, a configuration.
	besideKeys = []string{"type", "id", "callid", "toolcallid", "index", "status", "role", "content", "thought", "thoughts", "reasoning", "explanation"}
)

// calledByObject returns the tool that a JSON object calls; empty: it is no call.
func (f *finder) calledByObject(object map[string]any) string {
	if value := envelopeIn(object); value != nil {
		return f.calledBy(value)
	}
	if name := f.calledByKey(object); name != "" {
		return name
	}
	nameAt, argsAt := firstKey(object, nameKeys), firstKey(object, argumentKeys)
	written, _ := object[nameAt].(string)
	name, offered := f.lookup(written)
	if !offered || argsAt == "" || !hasOnly(object, nameAt, argsAt) {
		return ""
	}
	args, ok := argumentsOf(object[argsAt])
	if !ok && letters(argsAt) != "actioninput" || ok && !f.fit(name, slices.Collect(maps.Keys(args))) {
		return "" // an action_input may be a text
	}
	return name
}

// envelopeIn returns the calls in a field of an object, or nil.
func envelopeIn(object map[string]any) any {
	for _, key := range []string{"tool_calls", "function_call", "function", "tool_call", "tool_uses"} {
		switch value := object[key].(type) {
		case []any, map[string]any:
			if hasOnly(object, key) {
				return value
			}
		}
	}
	return nil
}

// calledByKey returns the tool that is the only key of an object, if its value has all required arguments of the tool
// and the answer has nothing else.
func (f *finder) calledByKey(object map[string]any) string {
	if len(object) != 1 || !strings.HasPrefix(strings.TrimSpace(f.text), "{") {
		return ""
	}
	for key, value := range object {
		args, ok := value.(map[string]any)
		if p, offered := f.offered[key]; ok && offered && len(p.required) > 0 && f.fit(key, slices.Collect(maps.Keys(args))) {
			return key
		}
	}
	return ""
}

// argumentsOf returns the arguments in a value: an object, or a text with an object.
func argumentsOf(value any) (args map[string]any, ok bool) {
	if text, is := value.(string); is {
		err := json.Unmarshal([]byte(text), &args)
		return args, err == nil
	}
	args, ok = value.(map[string]any)
	return args, ok
}

func firstKey(object map[string]any, keys []string) string {
	for _, wanted := range keys {
		for key := range object {
			if letters(key) == wanted {
				return key
			}
		}
	}
	return ""
}

// hasOnly reports whether an object has no other keys than these and besideKeys.
func hasOnly(object map[string]any, keys ...string) bool {
	for key := range object {
		if !slices.Contains(keys, key) && !slices.Contains(besideKeys, letters(key)) {
			return false
		}
	}
	return true
}

// minQuote is the minimum length of a line of a call that is compared, in bytes: shorter lines, such as brackets, occur
// in every text.
const minQuote = 8

// IsQuotation reports whether the call occurs, line by line, in one of the texts that the model was given.
func (c Call) IsQuotation(given []string) bool {
	for _, text := range given {
		if c.isIn(squeeze(text)) {
			return true
		}
	}
	return false
}

func (c Call) isIn(text string) bool {
	compared := false
	for line := range strings.SplitSeq(c.text, "\n") {
		if line = squeeze(line); len(line) < minQuote {
			continue
		}
		if compared = true; !strings.Contains(text, line) {
			return false
		}
	}
	return compared
}

// squeeze removes all space.
func squeeze(text string) string { return strings.Join(strings.Fields(text), "") }

// IsRequested reports whether messages of a user, or the instructions, ask to see a call: in one sentence, a call is
// the object of a verb such as show, or its form is requested. A sentence that only has the markup or the name of the
// tool does not count, because the work may be about parsers of calls, and names of tools may be verbs.
func (c Call) IsRequested(said []string, instructions string) bool {
	return slices.ContainsFunc(append(slices.Clip(said), instructions), c.asks)
}

// asks reports whether a text asks to see a call.
func (c Call) asks(text string) bool {
	for sentence := range sentencesOf(text) {
		if request().MatchString(c.plain(sentence)) {
			return true
		}
	}
	return false
}

func sentencesOf(text string) iter.Seq[string] {
	return slices.Values(sentenceEnd().Split(text, -1))
}

// plain returns a sentence with the words "one tool call" instead of the markup of the call, and instead of its tool in
// phrases such as "a call of Write" and "a Write call".
func (c Call) plain(sentence string) string {
	const words = " one tool call "
	if marker := c.markup(); marker != "" {
		at := strings.Index(sentence, marker)
		for at >= 0 {
			end := at + len(marker)
			if n := strings.IndexByte(sentence[end:], '>'); n >= 0 && n < maxTag {
				end += n + 1
			}
			sentence = sentence[:at] + words + sentence[end:]
			at = strings.Index(sentence, marker)
		}
	}
	name := regexp.QuoteMeta(c.Name)
	named := regexp.MustCompile("(?:\\b(?i:an?|one|the)\\s+)?(?:\\b(?i:calls?|invocations?)\\s+(?i:of|to|for|with)\\s+(?i:the\\s+)?(?i:tool\\s+)?[`\"'*]*" + name + "\\b[`\"'*]*|[`\"'*]*\\b" + name + "[`\"'*]*[ -](?i:call|invocation)\\b)")
	return named.ReplaceAllString(sentence, words)
}

// maxTag bounds the length of a tag, in bytes.
const maxTag = 80

// markup returns the beginning of the call's markup, without the name of the tool; empty: it has none.
func (c Call) markup() string {
	marker, _, _ := strings.Cut(strings.TrimRight(c.marker, ">"), c.Name)
	if len(marker) < 2 {
		return ""
	}
	return strings.TrimRight(marker, ` "'=`)
}

var (
	sentenceEnd = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[.!?:;]\s+|\n`) })
	// request matches a sentence that asks to see one tool call. Sentences about several calls, such as reports, do not
	// match.
	request = sync.OnceValue(func() *regexp.Regexp {
		const (
			call = `(?:(?:an?|one|the|this|that|each|every|another)\s+(?:[\w-]+\s+)?|\b)(?:tool|function)[ -]?(?:call|use|invocation)\b`
			one  = `(?:an?|one)\s+(?:[\w-]+\s+)?(?:tool|function)[ -]?(?:call|use|invocation)\b`
			show = `\b(?:shows?|give|print|write|output|illustrate|demonstrate|quote|repeat|convert|translate|generate|produce|render|encode)\b`
			// object has the words that may occur between the verb and the call.
			object = `(?:\s+(?:me|us|them|an?|one|the|some|complete|exact|full|short|minimal|valid|correct|sample|raw|examples?|samples?|syntax|format|form|of|for))*\s+`
			// behind is what may follow: if a noun follows, the call is only a part of its name.
			behind  = `\s*(?:$|[,.;:?!)"'\x60]|\b(?:of|to|for|as|in|with|without|that|which|from|on|so|like|looks?|here|below)\b)`
			foreign = `(?:tool|werkzeug|funktions?)[ -]?aufruf\w*|llamadas?|appels?|chiamat[ae]|调用|呼び出し|вызов\w*|` + one
			ask     = `zeige?n?|wie sieht|beispiel\w*|gib|muestra|ejemplo|montre|exempl[eo]s?|mostra|esempio|示例|例|显示|展示|見せ|покажи\w*|пример\w*`
		)
		return regexp.MustCompile(`(?i)` + show + object + call + behind +
			`|\b(?:examples?|samples?|syntax|format|form|structure)\s+(?:of|for)\s+` + call + behind +
			`|\b(?:how|what)\b[^,]*` + call + `.*\b(?:looks?|formatted|encoded|spelled)\b` +
			`|\b(?:explain|describe|document|what|how)\b(?:\s+(?:to|me|us|is|does|do|can|should|would|i|you|we|how|what))*\s+` + one + `\s*(?:$|[,.;:?!)"'\x60]|\b(?:is|works?|in|of|as|with|looks?)\b)` +
			`|(?:` + ask + `).*(?:` + foreign + `)|(?:` + foreign + `).*(?:` + ask + `)`)
	})
)
