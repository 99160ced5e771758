package httpapi

import (
	"bytes"
	"encoding/json"
)

// A ReasonText is a finish reason in JSON: a text, or the type of an object, as SGLang writes it. For any other value
// it is the first text inside, or otherwise the JSON, so that it never counts as absent.
type ReasonText string

// UnmarshalJSON accepts any value.
func (r *ReasonText) UnmarshalJSON(data []byte) error {
	switch value := string(data); {
	case data[0] == '"':
		*r = ReasonText(String(data))
	case data[0] == '{', data[0] == '[':
		*r = ReasonText(reasonInside(data))
	case value != "null" && value != "false" && value != "0":
		*r = ReasonText(value)
	}
	return nil
}

// reasonInside returns the reason in an object or a list. An empty one has none.
func reasonInside(data []byte) string {
	var object struct {
		Type Text `json:"type"`
	}
	_ = Unmarshal(data, &object) // a list has no type
	reason, isEmpty := string(object.Type), true
	decoder := json.NewDecoder(bytes.NewReader(data))
	_, _ = decoder.Token() // the bracket
	for reason == "" && decoder.More() {
		if data[0] == '{' {
			_, _ = decoder.Token() // the key
		}
		var text Text
		_ = decoder.Decode(&text) // JSON: cannot fail
		reason, isEmpty = string(text), false
	}
	if reason == "" && !isEmpty {
		return string(data)
	}
	return reason
}
