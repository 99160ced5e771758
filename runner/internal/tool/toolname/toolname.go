// Package toolname makes the names by which models call the tools of a Toolset.
package toolname

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Max is the maximum length of a name that every provider accepts.
const Max = 64

// hashed is the length of the hash that distinguishes two names that would be equal.
const hashed = 8

// Of returns the names of the tools of a Toolset, in their order: <toolset>__<tool>, with _ for characters that names
// cannot have, cut to the maximum length. If that makes two names equal, the changed ones get a hash of their original
// name, so that a name means the same tool in any order. The tools must differ.
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

// plain replaces characters that names cannot have.
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
