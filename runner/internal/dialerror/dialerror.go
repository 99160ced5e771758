// Package dialerror describes in a few words why a connection to a host failed.
package dialerror

import (
	"errors"
	"net"
)

// Cause returns why no connection could be made, without the address of the DNS server
// and without the URL; empty: a connection was made, or err is of another kind.
func Cause(err error) string {
	if dns, ok := errors.AsType[*net.DNSError](err); ok {
		if dns.IsNotFound {
			return "lookup " + dns.Name + ": no such host"
		}
		return "lookup " + dns.Name + ": " + dns.Err
	}
	dial, ok := errors.AsType[*net.OpError](err)
	switch {
	case !ok || dial.Op != "dial":
		return ""
	case dial.Addr == nil:
		return "dial: " + dial.Err.Error()
	}
	return "dial " + dial.Addr.String() + ": " + dial.Err.Error()
}

// IsNoHost reports whether the name of a host does not exist.
func IsNoHost(err error) bool {
	dns, ok := errors.AsType[*net.DNSError](err)
	return ok && dns.IsNotFound
}
