package untrusted

import (
	"strings"
	"unicode"
)

// Block returns text as a terminal shows it, with its line breaks and tabs. All other
// characters are treated as by Line.
func Block(text string) string {
	if isPlain(text) {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		switch {
		case r == '\n' || r == '\t':
			out.WriteRune(r)
		case r == '\r':
			// Line breaks of Windows are shown as others; alone it would overwrite the line.
		case unicode.IsSpace(r):
			out.WriteByte(' ')
		case unicode.Is(unicode.Variation_Selector, r):
		case isInvisible(r):
			out.WriteString(escaped(r))
		default:
			out.WriteRune(r)
		}
	}
	return out.String()
}

// isPlain is whether text is printable ASCII with line breaks and tabs, as most text is.
func isPlain(text string) bool {
	for i := range len(text) {
		if c := text[i]; (c < ' ' || c > '~') && c != '\n' && c != '\t' {
			return false
		}
	}
	return true
}
