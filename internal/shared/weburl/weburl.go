// Package weburl puts http and https URLs into one canonical form, so that a policy rule, an approver or a list of
// hosts decides about exactly the URL that is requested, in any spelling.
//
// The form follows RFC 3986, section 6.2.2 and 6.2.3: scheme and host in lower case, internationalized names in ASCII
// (UTS 46, Lookup profile), and an address in its canonical form (RFC 5952 for IPv6, IPv4-mapped addresses as IPv4). It
// has no default port, no dot segments, percent-encoding only where it is needed and in upper case, no fragment. Forms
// that programs read differently are refused: user information, backslashes, control characters, IPv6 zones, and IPv4
// addresses in hexadecimal, octal or fewer than four parts.
package weburl

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/net/idna"
)

// MaxBytes bounds a URL, before and after it is put into canonical form. No
// common server accepts a longer one.
const MaxBytes = 8 << 10

// An Error is why a text cannot be requested as a URL. It reads as the end of a sentence about the URL, with what to
// write instead.
type Error struct{ Problem string }

func (e *Error) Error() string { return e.Problem }

func refuse(format string, args ...any) error {
	return &Error{Problem: fmt.Sprintf(format, args...)}
}

// Parse parses a URL and returns it in canonical form: its String is the canonical spelling and, except for scheme and
// host, exactly what is sent. The error is an *Error.
func Parse(raw string) (*url.URL, error) {
	if len(raw) > MaxBytes {
		return nil, refuse("the URL has %d bytes; at most %d are sent", len(raw), MaxBytes)
	}
	raw = strings.TrimSpace(raw)
	if err := checkCharacters(raw); err != nil {
		return nil, err
	}
	// The fragment is removed and the query escaped first, because net/url would return errors about the fragment and
	// does not check the query.
	raw, _, _ = strings.Cut(raw, "#")
	before, query, _ := strings.Cut(raw, "?")
	u, err := url.Parse(before)
	if err != nil {
		if detail, ok := errors.AsType[*url.Error](err); ok {
			err = detail.Err
		}
		return nil, refuse("it is no URL: %v", err)
	}
	u.RawQuery = normalize(query, isQuery)
	if err := Canonicalize(u); err != nil {
		return nil, err
	}
	return u, nil
}

// checkCharacters refuses characters that some parsers drop, or read differently.
func checkCharacters(raw string) error {
	path, _, _ := strings.Cut(raw, "?")
	switch {
	case strings.ContainsFunc(raw, isControl):
		return refuse("it is no URL: it has a tab, a line end or another control character in it; write it without, or percent-encoded")
	case strings.Contains(path, `\`):
		return refuse(`it is no URL: it has a backslash in it, which some programs read as a slash; write / or %%5C`)
	}
	return nil
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// Canonicalize puts a URL that was parsed elsewhere, such as the target of a
// redirect, into canonical form. An error is an *Error.
func Canonicalize(u *url.URL) error {
	u.Scheme = strings.ToLower(u.Scheme)
	switch {
	case u.Scheme != "http" && u.Scheme != "https":
		return refuse("its scheme is %q; write the whole URL, beginning with https:// or http://", u.Scheme)
	case u.User != nil:
		return refuse("it has a user or password before the host; send an Authorization header instead")
	case u.Hostname() == "" || u.Opaque != "":
		return refuse("it names no host")
	}
	authority, err := authority(u)
	if err != nil {
		return err
	}
	path, err := canonicalPath(u.EscapedPath())
	if err != nil {
		return err
	}
	decoded, err := url.PathUnescape(path)
	if err != nil {
		return refuse("it is no URL: %v", err)
	}
	*u = url.URL{Scheme: u.Scheme, Host: authority, Path: decoded, RawPath: path, RawQuery: normalize(u.RawQuery, isQuery)}
	if size := len(u.String()); size > MaxBytes {
		return refuse("the URL has %d bytes when it is escaped; at most %d are sent", size, MaxBytes)
	}
	return nil
}

// authority returns host and port: the host in canonical form, and the port unless it is the default of the scheme.
func authority(u *url.URL) (string, error) {
	host, err := Host(u.Hostname())
	if err != nil {
		return "", err
	}
	if strings.HasPrefix(u.Host, "[") != strings.Contains(host, ":") && !isMapped(u.Hostname()) {
		return "", refuse("%q is no host name: only an IPv6 address stands in brackets", u.Host)
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	if u.Port() == "" {
		return host, nil
	}
	port, err := strconv.ParseUint(u.Port(), 10, 16)
	switch {
	case err != nil || port == 0:
		return "", refuse("its port is %s; write a number from 1 to 65535", u.Port())
	case u.Scheme == "http" && port == 80, u.Scheme == "https" && port == 443:
		return host, nil
	}
	return host + ":" + strconv.FormatUint(port, 10), nil
}

const hexDigits = "0123456789ABCDEF"

// normalize returns a text with canonical percent-encoding, in upper case. It encodes bytes that are not allowed, and
// keeps encoded reserved bytes encoded, because they may mean something else than unencoded. A percent sign that
// encodes nothing is encoded.
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

// isUnreserved reports whether a character is unreserved by RFC 3986, section 2.3.
func isUnreserved(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~", c) >= 0
}

// isPath reports whether a byte may be unencoded in a path: the rule pchar, and the slash.
func isPath(c byte) bool {
	return isUnreserved(c) || strings.IndexByte("!$&'()*+,;=:@/", c) >= 0
}

// isQuery reports whether a byte may be unencoded in a query. The rule query does not have the brackets, but all
// clients send them.
func isQuery(c byte) bool { return isPath(c) || strings.IndexByte("?[]", c) >= 0 }

// canonicalPath returns an escaped path with its percent-encoding in one form and
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

// LeadsUp reports whether a text, as part of a path, has a segment ".." that a server may follow: between slashes or
// backslashes, percent-encoded any number of times, or followed by a parameter ("..;").
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

// decode decodes valid percent-encoding once.
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

// IsPrefix reports whether a canonical URL can begin with a text. In some doubtful cases of an incomplete host or port
// it returns true.
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

// continuations complete texts that end in a path or a query of a canonical URL: at its end, after a segment, or in a
// percent-encoding after its first or second character. Several are tried for the latter, since some bytes are not
// encoded in the canonical form and others lead up.
var continuations = append(strings.Split(hexDigits, ""), "", "x", "00")

// Host returns the canonical form of a host name or an address, without
// brackets: a name in ASCII and lower case without the final dot, an IPv4
// address, or an IPv6 address as RFC 5952 writes it. An IPv4-mapped IPv6 address
// is the IPv4 address that the connection is made to. An error is an *Error.
func Host(host string) (string, error) {
	if address, ok, err := address(host); ok || err != nil {
		return address, err
	}
	name, err := ascii(host)
	if err != nil {
		return "", refuse("%q is no host name: %v", host, err)
	}
	name = strings.TrimSuffix(name, ".")
	if address, ok, err := address(name); ok || err != nil { // digits or dots of another script
		return address, err
	}
	switch {
	case name == "" || strings.HasPrefix(name, ".") || strings.HasSuffix(name, ".") || strings.Contains(name, ".."):
		return "", refuse("%q is no host name", host)
	case strings.Trim(name, nameCharacters) != "":
		return "", refuse("%q is no host name: it has other characters than letters, digits, -, _ and dots", host)
	case IsNumeric(name):
		return "", refuse("%q is no host name: write an IPv4 address as four decimal numbers", host)
	}
	return name, nil
}

// nameCharacters are the characters of host names, including the underscore, which DNS host names do not have but some
// resolvers accept.
const nameCharacters = "abcdefghijklmnopqrstuvwxyz0123456789-_."

// address returns an address in canonical form; false: host is not an address.
func address(host string) (string, bool, error) {
	a, err := netip.ParseAddr(host)
	if err != nil {
		return "", false, nil //nolint:nilerr // it is a name
	}
	if a.Zone() != "" {
		return "", false, refuse("the address %s has a zone, which names a network of this machine alone; leave it out", host)
	}
	return a.Unmap().String(), true, nil
}

func isMapped(host string) bool {
	a, err := netip.ParseAddr(host)
	return err == nil && a.Is4In6()
}

// ascii returns a name in lower case and ASCII. Names in ASCII are not checked against the rules of registered domains,
// because names of Services and buckets may violate them, for example with an underscore.
func ascii(host string) (string, error) {
	name := strings.ToLower(host)
	isOther := func(r rune) bool { return r >= 0x80 }
	if !strings.ContainsFunc(host, isOther) && !strings.Contains("."+name, ".xn--") {
		return name, nil
	}
	name, err := idna.Lookup.ToASCII(host)
	if err != nil {
		return "", err
	}
	if again, err := idna.Lookup.ToASCII(name); err != nil || again != name { // as of bytes that are no text
		return "", errors.New("it has no form in ASCII")
	}
	return name, nil
}

// IsNumeric reports whether the last part of a name is a number, which distinguishes IPv4 addresses from names: some
// resolvers read 0x7f.1 and 2130706433 as 127.0.0.1.
func IsNumeric(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	hex, ok := strings.CutPrefix(last, "0x")
	if ok && strings.Trim(hex, "0123456789abcdef") == "" {
		return true
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}
