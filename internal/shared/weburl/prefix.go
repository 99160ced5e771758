package weburl

import (
	"regexp"
	"slices"
	"strings"
)

// IsPrefix reports whether a canonical URL begins with a text. It is true in some
// doubtful cases of a host or port that may go on.
func IsPrefix(text string) bool {
	if strings.HasPrefix("https://", text) || strings.HasPrefix("http://", text) || openAuthority.MatchString(text) {
		return true
	}
	return slices.ContainsFunc(continuations, func(more string) bool {
		u, err := Parse(text + more)
		return err == nil && strings.HasPrefix(u.String(), text)
	})
}

// openAuthority matches a URL that ends in its host or port, so that both may go on.
var openAuthority = regexp.MustCompile(`^https?://([a-z0-9._-]*|\[[0-9a-f:.]*\]?)(:[0-9]*)?$`)

// continuations complete each text that ends in a path or a query of a canonical
// URL: at its end, after a part of it, in a percent-encoding after its first or
// second character. More than one is tried there, since some bytes are not encoded
// in the canonical form and others lead up.
var continuations = append(strings.Split(hexDigits, ""), "", "x", "00")
