package task

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

// Hash is the name of a snapshot: the sha256 of its bytes, in hexadecimal.
func Hash(snapshot []byte) string {
	sum := sha256.Sum256(snapshot)
	return hex.EncodeToString(sum[:])
}

// Cut is s as valid UTF-8 without NUL, shortened to at most limit bytes at a
// character's boundary, an ellipsis marking the cut.
func Cut(s string, limit int) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "�"), "\x00", "")
	if len(s) <= limit {
		return s
	}
	const ellipsis = "…"
	end := max(limit-len(ellipsis), 0)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	if end == 0 {
		return ""
	}
	return s[:end] + ellipsis
}
