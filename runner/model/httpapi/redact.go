package httpapi

import (
	"strings"
	"unicode"
)

// maxMessage is how much is kept of what an endpoint says.
const maxMessage = 1 << 10

// minPart is the shortest piece of a key that is worth hiding.
const minPart = 4

// printable returns text of the endpoint as it may be shown: without the key, which
// endpoints like to quote, without control characters, bounded.
func (x *Call) printable(text string) string {
	text = redact(strings.ToValidUTF8(text, "�"), x.key)
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	}), " ")
	if len(text) <= maxMessage {
		return text
	}
	return strings.ToValidUTF8(text[:maxMessage], "") + "…"
}

// redact takes a key out of a text, and the piece of one at the end where the
// text was cut.
func redact(text, key string) string {
	const hidden = "‹key›"
	if key == "" {
		return text
	}
	text = strings.ReplaceAll(text, key, hidden)
	for n := len(key) - 1; n >= minPart; n-- {
		if strings.HasSuffix(text, key[:n]) {
			return text[:len(text)-n] + hidden
		}
	}
	return text
}
