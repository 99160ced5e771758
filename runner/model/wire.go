package model

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// WireID returns the id of a call for requests: nine letters and digits, the only form that every known provider
// accepts (Mistral accepts no other). It is unique in the session of the call, whose name is left out.
func WireID(id string) string {
	own := id[strings.LastIndexByte(id, '.')+1:]
	first, n, _ := strings.Cut(own, "c")
	if seq, ok := strings.CutPrefix(first, "s"); ok && number(seq, 4) && number(n, 3) {
		return "s" + "0000"[len(seq):] + seq + "c" + "000"[len(n):] + n
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])[:9]
}

// number reports whether a text is a number with a maximum number of digits, as step.CallID writes it.
func number(text string, digits int) bool {
	if text == "" || len(text) > digits || text[0] == '0' && text != "0" {
		return false
	}
	return !strings.ContainsFunc(text, func(r rune) bool { return r < '0' || r > '9' })
}

// maxName is the longest name of a tool that providers accept.
const maxName = 64

// WireName returns the name of a tool in a form that every provider accepts. A model may invent an invalid name, and
// with it in the session a provider would refuse each later request.
func WireName(name string) string {
	legal := strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
	return cmp.Or(legal[:min(len(legal), maxName)], "unnamed")
}

// Interlude is the text of an answer that is inserted between a tool result and a message of the user if there was
// none: many chat templates accept no message of the user directly after a tool result.
// https://github.com/mistralai/mistral-common
const Interlude = "(continued)"
