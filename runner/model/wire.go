package model

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/step"
)

// WireID is the id of a call on the wire: nine letters and digits, the one form
// that every known provider accepts (Mistral accepts no other). It is unique in
// the session of the call, whose name is left out.
func WireID(id string) string {
	own := id[strings.LastIndexByte(id, '.')+1:]
	var seq int64
	var n int
	if _, err := fmt.Sscanf(own, "s%dc%d", &seq, &n); err == nil && own == step.CallID("", seq, n) && seq <= 9999 && n <= 999 {
		return fmt.Sprintf("s%04dc%03d", seq, n)
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])[:9]
}

// maxName is the longest name of a tool that providers accept.
const maxName = 64

// WireName is a name that every provider accepts for a tool. Models invent
// others, and one would make each later request of the session fail.
func WireName(name string) string {
	legal := strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
	return cmp.Or(legal[:min(len(legal), maxName)], "unnamed")
}
