package task

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
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

// Middle shortens a text to limit bytes by leaving out its middle, and says how
// much: what stands at its end may matter the most.
func Middle(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	gap := fmt.Sprintf(" […%d bytes left out…] ", len(s)-limit)
	room := max(limit-len(gap), 0)
	head, tail := room*2/3, room/3
	return strings.ToValidUTF8(s[:head], "") + gap + strings.ToValidUTF8(s[len(s)-tail:], "")
}
