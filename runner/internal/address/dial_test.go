package address

import (
	"errors"
	"net"
	"net/netip"
	"testing"
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

// This machine is reached by its own names, and not by another name that leads to it.
func TestAHostThatLeadsToThisMachineIsRefused(t *testing.T) {
	server, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Addr().String())
	dial := DialContext(&net.Dialer{Resolver: &net.Resolver{PreferGo: true}})
	for host, want := range map[string]bool{"127.0.0.1": true, "localhost": true, "0.0.0.0": false} {
		conn, err := dial(t.Context(), "tcp", net.JoinHostPort(host, port))
		if err == nil {
			_ = conn.Close()
		}
		var refused *RefusedError
		if (err == nil) != want || !want && !errors.As(err, &refused) {
			t.Errorf("%s: %v", host, err)
		}
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
