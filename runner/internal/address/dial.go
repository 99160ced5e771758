package address

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"

	"github.com/deckhand-dev/deckhand/internal/shared/weburl"
)

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

// DialContext returns the DialContext of a dialer for a URL in a spec. It makes no connection to an
// address that is [Never] reached, except to this machine for a host that says so: localhost, one of
// its addresses, or a name that this machine has by itself. Another name that leads there is
// refused, whoever answers for it.
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

// Control is the ControlContext of a [net.Dialer] that reaches no address that is [Never] reached. It is
// asked when the address of a connection is known, before it is made.
func Control(_ context.Context, _, to string, _ syscall.RawConn) error {
	return check(to, func(a netip.Addr) bool { return Of(a) != Never })
}

// controlLocal reaches this machine alone.
func controlLocal(_ context.Context, _, to string, _ syscall.RawConn) error {
	return check(to, func(a netip.Addr) bool { return a.Unmap().IsLoopback() })
}

// controlOwn reaches this machine and what Control reaches: a hostname can lead to loopback, as on
// Debian, or to the address in the network, as in a pod.
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
