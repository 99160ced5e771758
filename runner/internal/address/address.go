// Package address judges where a connection may lead, by the address that it is
// about to be made to.
package address

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/deckhand-dev/deckhand/internal/shared/weburl"
)

// A Zone is how far away an address is.
type Zone int

const (
	// Never is never reached by any tool: this machine, link-local addresses, metadata services, and addresses that are
	// no host's.
	Never Zone = iota
	// Within is reached only with a list of hosts: the cluster and its surroundings.
	Within
	// Public are all other addresses.
	Public
)

// Sources of these lists are IANA's registries of special-purpose addresses, and the documentation of clouds about
// their metadata services.
var (
	neverNets = prefixes(
		"0.0.0.0/8",          // this network
		"127.0.0.0/8",        // loopback
		"169.254.0.0/16",     // link-local, with most metadata services
		"192.0.0.0/24",       // protocol assignments
		"192.0.2.0/24",       // documentation
		"192.88.99.0/24",     // relays of 6to4
		"198.51.100.0/24",    // documentation
		"203.0.113.0/24",     // documentation
		"224.0.0.0/4",        // multicast
		"255.255.255.255/32", // broadcast

		"100.100.100.200/32",     // metadata: Alibaba
		"168.63.129.16/32",       // the host: Azure
		"fd00:ec2::/32",          // metadata: AWS
		"fd20:ce::/32",           // metadata: Google
		"fd00:42::42/128",        // metadata: Scaleway
		"fd00:c1::a9fe:a9fe/128", // metadata: Oracle

		"2001::/23",     // protocol assignments, with Teredo
		"2001:db8::/32", // documentation
		"2002::/16",     // 6to4
		"3fff::/20",     // documentation
	)
	withinNets = prefixes(
		"10.0.0.0/8",
		"100.64.0.0/10", // shared, as of providers and some clusters
		"172.16.0.0/12",
		"192.168.0.0/16",
		"198.18.0.0/15", // benchmarks, and some clusters
		"240.0.0.0/4",   // reserved, and pods of some clusters
		"fc00::/7",      // unique local
	)
	// publicNets is all of IPv6 that is in use; the rest leads nowhere.
	publicNets = prefixes("2000::/3")
	// embedding are prefixes of addresses whose last four bytes are an IPv4 address, to which the network translates
	// them.
	embedding = prefixes(
		"64:ff9b::/96",    // NAT64
		"::ffff:0:0:0/96", // SIIT
	)
)

func prefixes(all ...string) []netip.Prefix {
	parsed := make([]netip.Prefix, len(all))
	for i, one := range all {
		parsed[i] = netip.MustParsePrefix(one)
	}
	return parsed
}

// Of judges an address.
func Of(a netip.Addr) Zone {
	a = a.Unmap().WithZone("")
	if contains(embedding, a) {
		full := a.As16()
		a = netip.AddrFrom4([4]byte(full[12:]))
	}
	switch {
	case !a.IsValid(), contains(neverNets, a):
		return Never
	case contains(withinNets, a):
		return Within
	case a.Is4(), contains(publicNets, a):
		return Public
	}
	return Never
}

func contains(nets []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(nets, func(p netip.Prefix) bool { return p.Contains(a) })
}

// A RefusedError means that a connection was refused for its address.
type RefusedError struct {
	Addr netip.Addr
	// Host is a number that is no address; empty: Addr is the cause.
	Host string
}

func (e *RefusedError) Error() string {
	if e.Host != "" {
		return fmt.Sprintf("the host %s may not be reached: it is a number, and no name; write an IPv4 address as four decimal numbers", e.Host)
	}
	return fmt.Sprintf("the address %s may not be reached: it is this machine, its link or a metadata service", e.Addr)
}

// CheckHost returns a [RefusedError] for a host that is written as an address which is [Never]
// reached, or as a number, which some resolvers take for an address: no name ends in one.
func CheckHost(host string) error {
	a, err := netip.ParseAddr(host)
	switch {
	case err == nil && Of(a) == Never:
		return &RefusedError{Addr: a}
	case err != nil && weburl.IsNumeric(strings.TrimSuffix(strings.ToLower(host), ".")):
		return &RefusedError{Host: host}
	}
	return nil
}

// DialContext returns the DialContext of a dialer for a URL in a spec. It refuses addresses in the zone [Never]. The
// exception is this machine, if the host names it: as localhost, by one of its addresses, or by a name in its own
// configuration. Any other name that resolves to this machine is refused.
func DialContext(d *net.Dialer) func(ctx context.Context, network, addr string) (net.Conn, error) {
	return dialContext(d, func(host string) bool { return thisMachine().isNamed(host) })
}

func dialContext(d *net.Dialer, isOwnName func(host string) bool) func(ctx context.Context, network, addr string) (net.Conn, error) {
	checked, local, own := *d, *d, *d
	checked.ControlContext, local.ControlContext, own.ControlContext = Control, controlLocal, controlOwn
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(addr)
		switch {
		case err != nil:
			return checked.DialContext(ctx, network, addr)
		case IsLocal(host):
			return local.DialContext(ctx, network, addr)
		case isOwnName(host):
			return own.DialContext(ctx, network, addr)
		}
		if err := CheckHost(host); err != nil {
			return nil, err
		}
		return checked.DialContext(ctx, network, addr)
	}
}

// IsLocal reports whether a host is this machine by its name or address.
func IsLocal(host string) bool {
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Unmap().IsLoopback()
	}
	name := canonical(host)
	return name == "localhost" || strings.HasSuffix(name, ".localhost")
}

// Control is the ControlContext of a [net.Dialer] that refuses addresses in the zone [Never]. It is called when the
// address of a connection is known, before the connection is made.
func Control(_ context.Context, _, to string, _ syscall.RawConn) error {
	return check(to, func(a netip.Addr) bool { return Of(a) != Never })
}

// controlLocal allows only this machine.
func controlLocal(_ context.Context, _, to string, _ syscall.RawConn) error {
	return check(to, func(a netip.Addr) bool { return a.Unmap().IsLoopback() })
}

// controlOwn allows this machine and everything that Control allows: a hostname can resolve to loopback, as on Debian,
// or to the address in the network, as in a pod.
func controlOwn(_ context.Context, _, to string, _ syscall.RawConn) error {
	return check(to, func(a netip.Addr) bool { return a.Unmap().IsLoopback() || Of(a) != Never })
}

func check(to string, may func(netip.Addr) bool) error {
	at, err := netip.ParseAddrPort(to)
	if err != nil {
		return fmt.Errorf("reading the address of a connection: %w", err)
	}
	if !may(at.Addr()) {
		return &RefusedError{Addr: at.Addr()}
	}
	return nil
}

// A machine has the names of this machine, from files that only its owner writes.
type machine struct {
	hostname string
	hosts    string // the text of the hosts file
}

// thisMachine returns the names of this machine. Names that cannot be read are missing, and are treated like those of
// other machines.
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

// canonical returns a name in the form in which names are compared.
func canonical(name string) string { return strings.TrimSuffix(strings.ToLower(name), ".") }

// Proxy is the Proxy of an [http.Transport]. It uses the environment, and refuses a URL whose host is an address in the
// zone [Never], since a proxy would connect to it. The proxy itself resolves names, with its own rules.
func Proxy(r *http.Request) (*url.URL, error) {
	if host := r.URL.Hostname(); !IsLocal(host) {
		if err := CheckHost(host); err != nil {
			return nil, err
		}
	}
	return http.ProxyFromEnvironment(r)
}
