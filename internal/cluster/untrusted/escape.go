package untrusted

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
)

// EscapeJSON returns JSON whose texts a terminal shows as they are: what [Text] escapes is written as JSON
// escapes it, for example \u202e. The value stays the same.
func EscapeJSON(data []byte) []byte {
	return escape(data, func(r rune) string {
		if high, low := utf16.EncodeRune(r); high != unicode.ReplacementChar {
			return fmt.Sprintf(`\u%04x\u%04x`, high, low)
		}
		return fmt.Sprintf(`\u%04x`, r)
	})
}

// EscapeYAML is EscapeJSON for YAML in which the texts that need it are in double quotes.
func EscapeYAML(data []byte) []byte {
	return escape(data, func(r rune) string {
		if r > 0xffff {
			return fmt.Sprintf(`\U%08x`, r)
		}
		return fmt.Sprintf(`\u%04x`, r)
	})
}

// escape escapes invisible characters, except line feeds and tabs, which both formats are written with, and
// the selectors of how an emoji looks.
func escape(data []byte, escaped func(rune) string) []byte {
	var out strings.Builder
	out.Grow(len(data))
	for _, r := range string(data) {
		switch {
		case r == '\n' || r == '\t' || r == '\ufe0e' || r == '\ufe0f':
			out.WriteRune(r)
		case isInvisible(r) || unicode.In(r, unicode.Zl, unicode.Zp, unicode.Variation_Selector, unicode.Noncharacter_Code_Point):
			out.WriteString(escaped(r))
		default:
			out.WriteRune(r)
		}
	}
	return []byte(out.String())
}
