package weburl

import (
	"net/url"
	"slices"
	"strings"
)

// canonicalPath is an escaped path with its percent-encoding in one form and
// without dot segments; never empty.
func canonicalPath(escaped string) (string, error) {
	segments := strings.Split(strings.TrimPrefix(normalize(escaped, isPath), "/"), "/")
	var kept []string
	for i, s := range segments {
		last := i == len(segments)-1
		switch {
		case s == "." && !last:
		case s == "..":
			kept = kept[:max(len(kept)-1, 0)]
			if last {
				kept = append(kept, "")
			}
		case s == ".":
			kept = append(kept, "")
		case LeadsUp(s):
			return "", refuse("its path has .. encoded, or beside an encoded slash or a semicolon, which servers read differently; write the path that is meant")
		default:
			kept = append(kept, s)
		}
	}
	return "/" + strings.Join(kept, "/"), nil
}

// maxDecodings is how often LeadsUp decodes a text: more than any server does.
const maxDecodings = 8

// LeadsUp reports whether a text that becomes a part of a path has a part ".."
// in it that a server may follow: between slashes or backslashes, percent-encoded
// any number of times, or followed by a parameter ("..;").
func LeadsUp(text string) bool {
	for range maxDecodings {
		parts := strings.FieldsFunc(text, func(r rune) bool { return r == '/' || r == '\\' })
		if slices.ContainsFunc(parts, isUp) {
			return true
		}
		decoded := decode(text)
		if decoded == text {
			return false
		}
		text = decoded
	}
	return true // no legitimate client encodes as often
}

func isUp(part string) bool {
	name, _, _ := strings.Cut(part, ";")
	return name == ".."
}

// decode undoes percent-encoding where it is well formed.
func decode(s string) string {
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if isEncoded(s[i:]) {
			if one, err := url.PathUnescape(s[i : i+3]); err == nil {
				out.WriteString(one)
				i += 2
				continue
			}
		}
		out.WriteByte(s[i])
	}
	return out.String()
}
