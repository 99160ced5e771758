package dialerror_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/dialerror"
)

func TestCause(t *testing.T) {
	in := func(err error) error {
		return fmt.Errorf("asking: %w", &url.Error{Op: "Post", URL: "http://wether.example/secret", Err: &net.OpError{Op: "dial", Net: "tcp", Err: err}})
	}
	cases := map[string]struct {
		err    error
		want   string
		noHost bool
	}{
		"a name that is not there":     {in(&net.DNSError{Err: "no such host", Name: "wether.example", Server: "10.96.0.10:53", IsNotFound: true}), "lookup wether.example: no such host", true},
		"a DNS server that is down":    {in(&net.DNSError{Err: "server misbehaving", Name: "wether.example", IsTemporary: true}), "lookup wether.example: server misbehaving", false},
		"a refused connection":         {&net.OpError{Op: "dial", Addr: net.TCPAddrFromAddrPort(netip.MustParseAddrPort("10.0.0.1:80")), Err: errors.New("connect: connection refused")}, "dial 10.0.0.1:80: connect: connection refused", false},
		"one without an address":       {in(errors.New("i/o timeout")), "dial: i/o timeout", false},
		"a connection that was cut":    {&net.OpError{Op: "read", Err: errors.New("connection reset by peer")}, "", false},
		"an answer that makes no good": {errors.New("HTTP 500"), "", false},
		"no error":                     {nil, "", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := dialerror.Cause(tc.err); got != tc.want || dialerror.IsNoHost(tc.err) != tc.noHost {
				t.Errorf("Cause() = %q, IsNoHost() = %t, want %q, %t", got, dialerror.IsNoHost(tc.err), tc.want, tc.noHost)
			}
		})
	}
}
