package journal

import (
	"encoding/binary"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// plain reports whether a string, as it is written, is UTF-8 without control
// characters.
func plain(raw []byte) bool {
	const (
		ones  = 0x0101010101010101
		highs = 0x8080808080808080
	)
	rest := raw
	for len(rest) >= 8 {
		// The lowest byte below 0x20 gets a high bit, and so do bytes above it at most.
		x := binary.LittleEndian.Uint64(rest)
		if (x-ones*0x20)&^x&highs != 0 {
			return false
		}
		rest = rest[8:]
	}
	return printable(rest) && utf8.Valid(raw)
}

func printable(raw []byte) bool {
	for _, c := range raw {
		if c < 0x20 {
			return false
		}
	}
	return true
}

// escapes are the characters that stand for others behind a backslash.
var escapes = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// unescape writes what stands behind a backslash and returns how long it is.
func unescape(out *strings.Builder, raw []byte) (int, bool) {
	switch {
	case len(raw) == 0:
		return 0, false
	case escapes[raw[0]] != 0:
		out.WriteByte(escapes[raw[0]])
		return 1, true
	}
	const width = len("u0000")
	c, ok := unit(raw)
	if !ok {
		return 0, false
	}
	if !utf16.IsSurrogate(c) {
		out.WriteRune(c)
		return width, true
	}
	// A half alone stands for nothing.
	if len(raw) > width && raw[width] == '\\' {
		if low, ok := unit(raw[width+1:]); ok && utf16.DecodeRune(c, low) != utf8.RuneError {
			out.WriteRune(utf16.DecodeRune(c, low))
			return 2*width + 1, true
		}
	}
	out.WriteRune(utf8.RuneError)
	return width, true
}

// unit reads "u" and four digits.
func unit(raw []byte) (rune, bool) {
	if len(raw) < len("u0000") || raw[0] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(raw[1:5]), 16, 16)
	return rune(n), err == nil
}
