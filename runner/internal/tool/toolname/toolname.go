package toolname

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Max is how long a name may be, for every provider.
const Max = 64

// hashed is how much of a hash tells two names apart that are otherwise equal.
const hashed = 8

// Of are the names of the tools of a Toolset, in their order:
// <toolset>__<tool>, with _ for what names cannot have, cut to what they can.
// Where that makes two equal, those that it changed get a hash of what they are
// called at home, so that a name means the same tool whatever the order. The
// tools must differ.
func Of(toolset string, tools []string) []string {
	names := make([]string, len(tools))
	taken := make(map[string]int, len(tools))
	for i, t := range tools {
		names[i] = cut(plain(toolset+"__"+t), Max)
		taken[names[i]]++
	}
	for i, t := range tools {
		whole := toolset + "__" + t
		if taken[names[i]] > 1 && names[i] != whole {
			sum := sha256.Sum256([]byte(whole))
			names[i] = cut(names[i], Max-hashed-1) + "_" + hex.EncodeToString(sum[:])[:hashed]
		}
	}
	return names
}

// plain replaces what a name cannot have.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, s)
}

func cut(s string, n int) string { return s[:min(len(s), n)] }
