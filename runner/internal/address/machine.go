package address

import (
	"net/netip"
	"os"
	"slices"
	"strings"
)

// A machine is what a machine says of its own names. Only its owner writes it.
type machine struct {
	hostname string
	hosts    string // the text of the hosts file
}

// thisMachine returns an empty machine if it cannot be read, whose names are like those of others.
func thisMachine() machine {
	hostname, err := os.Hostname()
	if err != nil {
		hostname = ""
	}
	hosts, err := os.ReadFile("/etc/hosts")
	if err != nil {
		hosts = nil
	}
	return machine{hostname: hostname, hosts: string(hosts)}
}

// isNamed reports whether a host is the hostname, or a name that the hosts file has at loopback.
// Debian, for example, has the hostname at 127.0.1.1.
func (m machine) isNamed(host string) bool {
	name := canonical(host)
	if name != "" && name == canonical(m.hostname) {
		return true
	}
	for line := range strings.Lines(m.hosts) {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		a, err := netip.ParseAddr(fields[0])
		if err != nil || !a.Unmap().IsLoopback() {
			continue
		}
		if slices.ContainsFunc(fields[1:], func(field string) bool { return canonical(field) == name }) {
			return true
		}
	}
	return false
}

// canonical returns a name as names are compared.
func canonical(name string) string { return strings.TrimSuffix(strings.ToLower(name), ".") }
