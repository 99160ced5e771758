package mcp

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
)

// A resultText is the text of a result, to compare with its structured content: servers
// repeat that as text for clients that do not read it.
// https://modelcontextprotocol.io/specification/2025-11-25/server/tools#structured-content
type resultText struct {
	parts int      // of any kind
	texts []string // the texts, as far as they are compared
	size  int
}

// maxCompared bounds what is compared, in bytes: parsed JSON takes many times its length.
const maxCompared = 1 << 20

// add adds a part of a result.
func (s *resultText) add(raw json.RawMessage) {
	s.parts++
	if s.size > maxCompared {
		return
	}
	text, ok := asText(raw)
	if !ok {
		text, ok = readObject(raw).text("text")
	}
	if s.size += len(text) + 1; ok && s.size <= maxCompared {
		s.texts = append(s.texts, text)
	}
}

// none reports whether a result has no content.
func (s *resultText) none() bool {
	return s.parts == 0 || s.parts == len(s.texts) && strings.Join(s.texts, "") == ""
}

// includes reports whether the texts repeat all of a structured content: one of them is its
// JSON, or they are the value of its only member, in which servers wrap values that are
// no objects.
func (s *resultText) includes(structured json.RawMessage) bool {
	if len(structured) > maxCompared || s.size > maxCompared {
		return false
	}
	value, err := decodeExact(structured)
	if err != nil {
		return false
	}
	if s.repeats(value) {
		return true
	}
	wrapped, ok := value.(map[string]any)
	if !ok || len(wrapped) != 1 {
		return false
	}
	for _, only := range wrapped {
		value = only
	}
	return s.repeats(value)
}

// repeats reports whether one of the texts is a value, or each is an element of it.
func (s *resultText) repeats(value any) bool {
	for _, text := range s.texts {
		if isText(text, value) {
			return true
		}
	}
	list, ok := value.([]any)
	if !ok || len(list) != len(s.texts) || len(list) == 0 {
		return false
	}
	for i, text := range s.texts {
		if !isText(text, list[i]) {
			return false
		}
	}
	return true
}

// isText reports whether a text is a value, as it is or as JSON.
func isText(text string, value any) bool {
	if text == value {
		return true
	}
	parsed, err := decodeExact([]byte(text))
	return err == nil && reflect.DeepEqual(parsed, value)
}

// decodeExact reads JSON with the digits of its numbers.
func decodeExact(raw []byte) (any, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var value any
	if err := dec.Decode(&value); err != nil {
		return nil, err
	}
	if dec.More() {
		return nil, errPanic
	}
	return value, nil
}
