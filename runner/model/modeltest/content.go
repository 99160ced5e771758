package modeltest

import (
	"encoding/json"
	"fmt"
)

// UnmarshalJSON reads a message whose content is a text, a list of texts, or
// null.
func (m *Message) UnmarshalJSON(data []byte) error {
	type plain Message
	var raw struct {
		plain
		Content json.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return err
	}
	*m = Message(raw.plain)
	if len(raw.Content) == 0 || raw.Content[0] != '[' {
		return json.Unmarshal(orNull(raw.Content), &m.Content)
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if err := json.Unmarshal(raw.Content, &parts); err != nil {
		return err
	}
	text := ""
	for _, p := range parts {
		if p.Type != "text" || p.Text == "" {
			return fmt.Errorf("a part of type %q with %d bytes of text", p.Type, len(p.Text))
		}
		text += p.Text
	}
	m.Content = &text
	return nil
}

func orNull(raw json.RawMessage) []byte {
	if len(raw) == 0 {
		return []byte("null")
	}
	return raw
}
