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
	// The letters of keys are compared: some write tool_name, others toolName. besideKeys may
	// stand beside name and arguments; with any other an object is
	// something else, such as a configuration.
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

// envelopeIn returns the calls that an object has in a field of their own; nil: it has none.
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

// calledByKey returns the tool that is the one key of an object, if its value has all
// arguments of the tool and the answer is nothing else.
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
