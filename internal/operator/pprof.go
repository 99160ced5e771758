package operator

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
)

var errPprofAddress = errors.New("profiles are served on the loopback interface only, because they contain memory of the operator: set --pprof-address=127.0.0.1:6060, and use kubectl port-forward")

// checkPprofAddress refuses an address that others than users of kubectl port-forward can reach.
func checkPprofAddress(address string) error {
	if address == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("reading --pprof-address %q: %w", address, err)
	}
	if ip, err := netip.ParseAddr(host); err != nil || !ip.IsLoopback() {
		return fmt.Errorf("--pprof-address is %q: %w", address, errPprofAddress)
	}
	return nil
}
