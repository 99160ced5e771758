package networkcheck

import (
	"context"
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"
)

// Connections that are opened and ask nothing keep no other client out.
func TestAFloodOfIdleConnections(t *testing.T) {
	s, _ := serving(t)
	for range maxAnswers {
		conn, err := dialTCP(t.Context(), s.open.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
	c := checking(s.open.Addr())
	c.dial = func(ctx context.Context, address string) (net.Conn, error) {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
		return d.DialContext(ctx, "tcp", address)
	}
	if f := c.Check(t.Context()); f.State != Open {
		t.Errorf("%+v, want Open", f)
	}
}

// The kernel counts connections that a listener without room loses.
func TestLostConnectionsAreCounted(t *testing.T) {
	const room = 1
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Listen(fd, room); err != nil {
		t.Fatal(err)
	}
	at, err := syscall.Getsockname(fd)
	if err != nil {
		t.Fatal(err)
	}
	before := lostConnections()
	for range room + 4 {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if conn, err := dialTCP(ctx, fmt.Sprintf("127.0.0.1:%d", at.(*syscall.SockaddrInet4).Port)); err == nil {
			defer conn.Close()
		}
	}
	if after := lostConnections(); after == before {
		t.Errorf("%d connections were lost before and after", after)
	}
}
