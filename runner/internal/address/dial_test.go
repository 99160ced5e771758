package address

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/address/addresstest"
)

func TestConnectionsAreJudgedByTheirAddress(t *testing.T) {
	for addr, want := range map[string]bool{
		"10.0.0.1:80": true, "1.1.1.1:443": true, "240.0.0.1:80": true,
		"127.0.0.1:80": false, "[::1]:80": false, "[::ffff:127.0.0.1]:80": false,
		"169.254.169.254:80": false, "[fd00:ec2::254]:80": false, "[64:ff9b::a9fe:a9fe]:80": false,
	} {
		if err := Control(t.Context(), "tcp", addr, nil); (err == nil) != want {
			t.Errorf("%s: %v", addr, err)
		}
		if err := controlLocal(t.Context(), "tcp", addr, nil); (err == nil) != netip.MustParseAddrPort(addr).Addr().Unmap().IsLoopback() {
			t.Errorf("%s, for a host that is this machine: %v", addr, err)
		}
	}
}

// This machine is reached by its own names, and not by another name that leads to it. Names of this
// machine lead to no other place that may not be reached, whoever answers for them.
func TestHostsAreReachedByTheirNames(t *testing.T) {
	server, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Addr().String())
	for name, tc := range map[string]struct {
		host, leadsTo string // empty: it is an address, or in the hosts file
		isRefused     bool
	}{
		"the address of loopback":              {host: "127.0.0.1"},
		"another address of loopback":          {host: "127.0.1.1"},
		"localhost":                            {host: "localhost"},
		"a name below localhost":               {host: "a.localhost", leadsTo: "127.0.0.1"},
		"one that leads elsewhere":             {host: "a.localhost", leadsTo: "0.0.0.0", isRefused: true},
		"one that leads to a metadata service": {host: "a.localhost", leadsTo: "169.254.169.254", isRefused: true},
		"one that leads to the network":        {host: "a.localhost", leadsTo: "10.0.0.1", isRefused: true},
		"no host":                              {host: "0.0.0.0", isRefused: true},
		"a name of others":                     {host: "rebind.example", leadsTo: "127.0.0.1", isRefused: true},
		"the hostname":                         {host: "desk", leadsTo: "127.0.0.1"},
		"the hostname, as Debian writes it":    {host: "Desk.", leadsTo: "127.0.1.1"},
		"the hostname in the network":          {host: "desk", leadsTo: "10.0.0.1"},
		"the hostname at a metadata service":   {host: "desk", leadsTo: "169.254.169.254", isRefused: true},
		"the hostname at no host":              {host: "desk", leadsTo: "0.0.0.0", isRefused: true},
		"a name of the hosts file":             {host: "models.desk.example", leadsTo: "127.0.1.1"},
		"a part of the hostname":               {host: "des", leadsTo: "127.0.0.1", isRefused: true},
		"a name below the hostname":            {host: "a.desk", leadsTo: "127.0.0.1", isRefused: true},
		"a host of the hosts file":             {host: "printer", leadsTo: "127.0.0.1", isRefused: true},
	} {
		t.Run(name, func(t *testing.T) {
			key := strings.TrimSuffix(tc.host, ".") + "."
			resolver := addresstest.Resolver(map[string][]string{key: {tc.leadsTo}, strings.ToLower(key): {tc.leadsTo}})
			from := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} // from where nothing leaves this machine
			dial := dialContext(&net.Dialer{Resolver: resolver, LocalAddr: from}, machine{
				hostname: "desk",
				hosts:    "127.0.0.1\tlocalhost\n127.0.1.1 other  models.DESK.example # 127.0.0.1\n10.0.0.9 printer\n#127.0.0.1 printer\nprinter\n",
			}.isNamed)
			conn, err := dial(t.Context(), "tcp", net.JoinHostPort(tc.host, port))
			if err == nil {
				_ = conn.Close()
			}
			var refused *RefusedError
			if is := errors.As(err, &refused); is != tc.isRefused {
				t.Errorf("%v", err)
			}
			if !tc.isRefused && tc.leadsTo == "127.0.0.1" && err != nil {
				t.Errorf("it was not reached: %v", err)
			}
		})
	}
}

func TestIsLocal(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "a.localhost.": true, "127.9.9.9": true, "::1": true, "::ffff:127.0.0.1": true,
		"localhost.example": false, "mylocalhost": false, "10.0.0.1": false, "": false,
	} {
		if IsLocal(host) != want {
			t.Errorf("IsLocal(%q) = %t", host, !want)
		}
	}
}

// No name ends in a number: such a host is an address that is written otherwise, or none.
func TestAHostThatIsANumberIsRefused(t *testing.T) {
	for host, want := range map[string]bool{
		"2852039166": false, "0xa9fea9fe": false, "0251.0376.0251.0376": false, "169.16689662": false, "127.1": false, "1.2.3.4.": false, "10.0.0.256": false, "api.example.0X7F": false,
		"169.254.169.254": false, "::ffff:169.254.169.254": false, "fd00:ec2::254": false,
		"10.0.0.1": true, "1.1.1.1": true, "2606:4700:4700::1111": true, "api.example.com": true, "web-0": true, "4you.example": true, "1.example": true, "cafe": true,
	} {
		err := CheckHost(host)
		var refused *RefusedError
		if (err == nil) != want || !want && !errors.As(err, &refused) {
			t.Errorf("%s: %v", host, err)
		}
		if _, err := DialContext(&net.Dialer{Timeout: time.Nanosecond})(t.Context(), "tcp", net.JoinHostPort(host, "9")); errors.As(err, &refused) == want {
			t.Errorf("connecting to %s: %v", host, err)
		}
	}
}
