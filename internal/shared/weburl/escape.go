package weburl

import "strings"

const hexDigits = "0123456789ABCDEF"

// normalize writes the percent-encoding of a text in its one form: encoded are
// the bytes that allowed does not have, and those that were encoded though they
// are allowed but reserved, which may mean something else encoded; in upper
// case. A percent sign that encodes nothing is encoded itself.
func normalize(s string, allowed func(byte) bool) string {
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		encoded := isEncoded(s[i:])
		if encoded {
			c = unhex(s[i+1])<<4 | unhex(s[i+2])
			i += 2
		}
		if isUnreserved(c) || !encoded && c != '%' && allowed(c) {
			out.WriteByte(c)
			continue
		}
		out.WriteByte('%')
		out.WriteByte(hexDigits[c>>4])
		out.WriteByte(hexDigits[c&15])
	}
	return out.String()
}

// isEncoded reports whether a text begins with a percent-encoded byte.
func isEncoded(s string) bool {
	return len(s) >= 3 && s[0] == '%' && isHex(s[1]) && isHex(s[2])
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

func unhex(c byte) byte {
	switch {
	case c >= 'a':
		return c - 'a' + 10
	case c >= 'A':
		return c - 'A' + 10
	}
	return c - '0'
}

// isUnreserved is the rule unreserved of RFC 3986, section 2.3.
func isUnreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

// isPath are the bytes that stand in a path unencoded: the rule pchar, and the
// slash.
func isPath(c byte) bool {
	return isUnreserved(c) || strings.IndexByte("!$&'()*+,;=:@/", c) >= 0
}

// isQuery are the bytes that stand in a query unencoded. The brackets are not of
// the rule query, but everybody sends them.
func isQuery(c byte) bool { return isPath(c) || strings.IndexByte("?[]", c) >= 0 }
