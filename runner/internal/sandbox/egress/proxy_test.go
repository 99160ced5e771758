package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// A name may have several addresses, of which some do not answer.
func TestTheFirstAddressThatAnswersIsTaken(t *testing.T) {
	const one, two, three, four, five, private = "93.184.216.1", "93.184.216.2", "2606:4700::3", "93.184.216.4", "93.184.216.5", "10.0.0.1"
	cases := map[string]struct {
		addresses, answer []string
		dialed            []string
		fails             bool
	}{
		"the first":                      {[]string{one, two}, []string{one, two}, []string{one}, false},
		"the second":                     {[]string{one, two}, []string{two}, []string{one, two}, false},
		"the last that is tried":         {[]string{one, two, three, four}, []string{four}, []string{one, two, three, four}, false},
		"one behind those":               {[]string{one, two, three, four, five}, []string{five}, []string{one, two, three, four}, true},
		"none":                           {[]string{one, two}, nil, []string{one, two}, true},
		"a public one behind a private":  {[]string{private, two}, []string{private, two}, []string{two}, false},
		"private ones count for nothing": {[]string{private, private, private, private, five}, []string{five}, []string{five}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			n := &network{addresses: tc.addresses, answer: tc.answer}
			conn, err := n.proxy(t).dialAllowed(t.Context(), "good.example:443")
			if tc.fails != (err != nil) || !slices.Equal(tc.dialed, n.dialed) {
				t.Errorf("dialed %v, want %v: %v", n.dialed, tc.dialed, err)
			}
			if err == nil {
				_ = conn.Close()
				return
			}
			for _, a := range tc.dialed {
				if !strings.Contains(err.Error(), a+" refuses") {
					t.Errorf("the error does not have the cause of %s: %v", a, err)
				}
			}
		})
	}
}

// A network is where one name has addresses of which some answer.
type network struct {
	addresses, answer []string
	dialed            []string
}

func (n *network) proxy(t *testing.T) *proxy {
	t.Helper()
	p, err := newProxy(Options{Hosts: []string{"good.example"}, Resolve: n.resolve, Dial: n.dial})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (n *network) resolve(context.Context, string) (all []netip.Addr, _ error) {
	for _, a := range n.addresses {
		all = append(all, netip.MustParseAddr(a))
	}
	return all, nil
}

func (n *network) dial(_ context.Context, _, address string) (net.Conn, error) {
	host, _, _ := net.SplitHostPort(address)
	n.dialed = append(n.dialed, host)
	if !slices.Contains(n.answer, host) {
		return nil, fmt.Errorf("%s refuses", host)
	}
	conn, _ := net.Pipe()
	return conn, nil
}

// A command may ask for any number of hosts: the log names the first of them.
func TestLoggedHostsAreBounded(t *testing.T) {
	logged := 0
	p, err := newProxy(Options{
		Hosts: []string{"good.example"}, Log: func(string, bool) { logged++ },
		Dial: func(context.Context, string, string) (net.Conn, error) { return nil, io.EOF },
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 * maxLogged {
		if _, err := p.dialAllowed(t.Context(), fmt.Sprintf("h%d.example:443", i)); err == nil || errors.Is(err, io.EOF) {
			t.Fatalf("host %d is dialed: %v", i, err)
		}
	}
	if logged != maxLogged || len(p.logged) != maxLogged {
		t.Errorf("%d hosts are logged, %d are remembered; want %d", logged, len(p.logged), maxLogged)
	}
}
