package weburl

import (
	"errors"
	"net/netip"
	"strings"

	"golang.org/x/net/idna"
)

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

// nameCharacters are those of host names, with the underscore that some
// resolvers know though DNS host names do not have it.
const nameCharacters = "abcdefghijklmnopqrstuvwxyz0123456789-_."

// address is an address in its canonical form; false: host is none.
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

// ascii is a name in lower case and ASCII. Names that only have ASCII are not
// held to the rules of registered domains: Services and buckets have names that
// those do not allow, with an underscore for example.
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

// IsNumeric reports whether the last part of a name is a number, which is how
// addresses of IPv4 are told from names: some resolvers read 0x7f.1 and
// 2130706433 as 127.0.0.1.
func IsNumeric(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	hex, ok := strings.CutPrefix(last, "0x")
	if ok && strings.Trim(hex, "0123456789abcdef") == "" {
		return true
	}
	return last != "" && strings.Trim(last, "0123456789") == ""
}
