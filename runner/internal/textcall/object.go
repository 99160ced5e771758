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
		return regexp.MustCompile(`[\[{][\s\[{]*"(?:name|tool|tool_name|function|function_name|action|arguments|args|parameters|input|params|type|id|call_id|tool_call_id|tool_calls|thoughts?|reasoning|explanation)"\s*:`)
	})
	brokenCall = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[\s\[{]*"(?:name|tool|tool_name|function|action)"\s*:\s*"([\w.-]+)"\s*,\s*"(?:arguments|args|parameters|input|action_input|params)"\s*:\s*"?\{\s*\\?"(\w+)\\?"\s*:`)
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
	nameKeys     = []string{"name", "tool", "tool_name", "function_name", "function", "action"}
	argumentKeys = []string{"arguments", "args", "parameters", "input", "action_input", "tool_input", "params", "kwargs"}
	// besideKeys may stand beside name and arguments; with any other an object is
	// something else, such as a configuration.
	besideKeys = []string{"type", "id", "call_id", "tool_call_id", "index", "status", "role", "content", "thought", "thoughts", "reasoning", "explanation"}
)

// calledByObject returns the tool that a JSON object calls; empty: it is no call.
func (f *finder) calledByObject(object map[string]any) string {
	for _, envelope := range []string{"tool_calls", "function_call", "function", "tool_call"} {
		switch object[envelope].(type) {
		case []any, map[string]any:
			if hasOnly(object, envelope) {
				return f.calledBy(object[envelope])
			}
		}
	}
	nameAt, argsAt := firstKey(object, nameKeys), firstKey(object, argumentKeys)
	written, _ := object[nameAt].(string)
	name, offered := f.lookup(written)
	if !offered || argsAt == "" || !hasOnly(object, nameAt, argsAt) {
		return ""
	}
	args, ok := argumentsOf(object[argsAt])
	if !ok && argsAt != "action_input" || ok && !f.fit(name, slices.Collect(maps.Keys(args))) {
		return "" // an action_input may be a text
	}
	return name
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
	for _, key := range keys {
		if _, is := object[key]; is {
			return key
		}
	}
	return ""
}

// hasOnly reports whether an object has no other keys than these and besideKeys.
func hasOnly(object map[string]any, keys ...string) bool {
	for key := range object {
		if !slices.Contains(keys, key) && !slices.Contains(besideKeys, key) {
			return false
		}
	}
	return true
}
