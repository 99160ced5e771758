package shell

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// plainEscapes are the escapes of $'…' that stand for one character.
var plainEscapes = map[byte]byte{
	'a': '\a', 'b': '\b', 'e': 0x1b, 'E': 0x1b, 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t', 'v': '\v',
	'\\': '\\', '\'': '\'', '"': '"', '?': '?',
}

// decode decodes the text between the quotes of $'…'. It fails if shells decode it differently.
func decode(s string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			b.WriteByte(s[i])
			continue
		}
		i++
		if i == len(s) {
			return "", false
		}
		if c, ok := plainEscapes[s[i]]; ok {
			b.WriteByte(c)
			continue
		}
		text, used, ok := numbered(s[i:])
		if !ok {
			return "", false
		}
		b.WriteString(text)
		i += used - 1
	}
	return b.String(), true
}

// numbered decodes an escape with the number of a character, without its
// backslash, and returns how many bytes it read.
func numbered(s string) (text string, used int, ok bool) {
	base, start, most := 8, 0, 3
	switch s[0] {
	case 'x':
		base, start, most = 16, 1, 2
	case 'u':
		base, start, most = 16, 1, 4
	case 'U':
		base, start, most = 16, 1, 8
	}
	end := start
	for end < len(s) && end-start < most && isDigit(s[end], base) {
		end++
	}
	n, err := strconv.ParseUint(s[start:end], base, 32)
	if err != nil || n == 0 || s[0] != 'x' && base == 16 && !utf8.ValidRune(rune(n)) { //nolint:gosec // at most 32 bits; a NUL ends the string in some shells; bash writes surrogates
		return "", 0, false
	}
	if base == 8 && n == 0o400 {
		return "", 0, false // a byte of 0
	}
	if s[0] == 'u' || s[0] == 'U' {
		return string(rune(n)), end, true //nolint:gosec // at most 32 bits
	}
	return string([]byte{byte(n)}), end, true //nolint:gosec // three octal digits are cut to a byte by shells too
}

// isDigit reports whether c is a digit in a base.
func isDigit(c byte, base int) bool {
	_, err := strconv.ParseUint(string(c), base, 8)
	return err == nil
}
