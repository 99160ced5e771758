package egress

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
)

// A host is an entry of the list: a name or a wildcard, with a port or without.
type host struct {
	name  string // in lower case; of a wildcard with a leading dot
	below bool
	port  string // empty: every port
}

// maxHosts bounds the number of entries.
const maxHosts = 1024

func readHosts(list []string) ([]host, error) {
	if len(list) > maxHosts {
		return nil, fmt.Errorf("%d hosts are too many; use *.example.com for those below one", len(list))
	}
	all := make([]host, 0, len(list))
	for _, entry := range list {
		h, ok := readHost(entry)
		if !ok {
			return nil, fmt.Errorf("%q is no host: write one such as proxy.golang.org, *.example.com for those below it, or example.com:8443 for one port, without scheme and path", entry)
		}
		all = append(all, h)
	}
	return all, nil
}

func readHost(entry string) (host, bool) {
	var h host
	name := entry
	if at, port, err := net.SplitHostPort(entry); err == nil {
		if !isPort(port) {
			return h, false
		}
		name, h.port = at, port
	}
	name, h.below = strings.CutPrefix(name, "*.")
	name, ok := canonical(strings.Trim(name, "[]"))
	if !ok || strings.Contains(name, "*") {
		return h, false
	}
	h.name = name
	if h.below {
		if _, err := netip.ParseAddr(name); err == nil {
			return h, false
		}
		h.name = "." + name
	}
	return h, true
}

func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0
}

// canonical returns a name as it is compared and resolved: in lower case without
// the final dot, or an address in its shortest form.
func canonical(name string) (string, bool) {
	if a, err := netip.ParseAddr(name); err == nil {
		return a.Unmap().WithZone("").String(), a.Zone() == ""
	}
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if name == "" || len(name) > 253 || strings.HasPrefix(name, ".") || strings.Contains(name, "..") || numeric(name) {
		return "", false
	}
	const known = "abcdefghijklmnopqrstuvwxyz0123456789.-_"
	return name, !strings.ContainsFunc(name, func(r rune) bool { return !strings.ContainsRune(known, r) })
}

// numeric reports whether the last label of a name is a number: some resolvers
// parse 0x7f.1 and 2130706433 as addresses.
func numeric(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	if hex, ok := strings.CutPrefix(last, "0x"); ok && strings.Trim(hex, "0123456789abcdef") == "" {
		return true
	}
	return strings.Trim(last, "0123456789") == ""
}

// matches reports whether the entry contains a canonical name and a port.
func (h host) matches(name, port string) bool {
	if h.port != "" && h.port != port {
		return false
	}
	if h.below {
		return len(name) > len(h.name) && strings.HasSuffix(name, h.name)
	}
	return name == h.name
}
