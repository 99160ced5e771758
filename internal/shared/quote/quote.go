// Package quote bounds the texts of others that messages and results repeat.
package quote

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Clip cuts a text to at most n bytes, at a character, and marks the cut.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// Line returns a text for a part of a line: without line breaks and characters that cannot be printed, and clipped.
func Line(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, Clip(s, 4*n)) // the rest is not looked at
	return Clip(strings.Join(strings.Fields(s), " "), n)
}

// WholeRunes removes an incomplete character at the end of a text that was cut.
func WholeRunes(b []byte) []byte {
	for i := 1; i <= min(utf8.UTFMax, len(b)); i++ {
		if utf8.RuneStart(b[len(b)-i]) {
			if !utf8.FullRune(b[len(b)-i:]) {
				return b[:len(b)-i]
			}
			break
		}
	}
	return b
}
