package address

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"syscall"
)

// A RefusedError means that a connection was refused for its address.
type RefusedError struct{ Addr netip.Addr }

func (e *RefusedError) Error() string {
	return fmt.Sprintf("the address %s may not be reached: it is this machine, its link or a metadata service", e.Addr)
}

// DialContext returns the DialContext of a dialer for a URL in a spec. It makes no connection to an
// address that is [Never] reached, except to this machine for a host that says so: localhost, or
// one of its addresses. A name that leads there is refused, whoever answers for it.
func DialContext(d *net.Dialer) func(ctx context.Context, network, addr string) (net.Conn, error) {
	checked, local := *d, *d
	checked.ControlContext = Control
	local.ControlContext = controlLocal
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		if host, _, err := net.SplitHostPort(addr); err == nil && IsLocal(host) {
			return local.DialContext(ctx, network, addr)
		}
		return checked.DialContext(ctx, network, addr)
	}
}

// IsLocal reports whether a host is this machine by its name or address.
func IsLocal(host string) bool {
	if a, err := netip.ParseAddr(host); err == nil {
		return a.Unmap().IsLoopback()
	}
	name := strings.TrimSuffix(strings.ToLower(host), ".")
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
