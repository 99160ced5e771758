package mcp

import (
	"fmt"
	"strings"
	"unicode"
)

// line is a text from a server as a part of one of our lines: short, and without
// what breaks lines or writes to terminals.
func line(s string, n int) string {
	s = clip(s, 4*n) // the rest is not looked at
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, s)
	return clip(strings.Join(strings.Fields(s), " "), n)
}

// clip cuts a text to at most n bytes, at a character.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// size is a number of bytes for people.
func size(n int64) string {
	switch {
	case n >= 10<<20:
		return fmt.Sprintf("%d MB", n>>20)
	case n >= 10<<10:
		return fmt.Sprintf("%d KB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}
