package networkcheck

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
)

// A flood of the closed port makes the kernel lose connections to it. A pod that can do that
// must not make it read as closed.
func TestAFloodedPortIsNotClosed(t *testing.T) {
	s, _ := serving(t)
	lost := uint64(0)
	s.lost = func() uint64 { return lost }
	c := checking(s.open.Addr())
	c.dial = func(ctx context.Context, address string) (net.Conn, error) {
		if address == s.closed.Addr().String() {
			lost++ // read by the next answer, which is asked for after this
			return nil, blocked(syscall.ETIMEDOUT)
		}
		return dialTCP(ctx, address)
	}
	if f := c.Check(t.Context()); f.State != Unknown || !errors.Is(f.Err, errFlooded) {
		t.Errorf("%+v, want Unknown", f)
	}
}

// A client that opens connections and asks nothing keeps only itself out.
func TestSources(t *testing.T) {
	var s sources
	for range maxOfSource {
		if !s.enter("a") {
			t.Fatal("a is kept out too early")
		}
	}
	if s.enter("a") || !s.enter("b") {
		t.Error("a may enter, or b may not")
	}
	s.leave("a")
	if !s.enter("a") {
		t.Error("a may not enter though one of it has left")
	}
	for range maxOfSource {
		s.leave("a")
	}
	s.leave("b")
	if len(s.counts) > 0 {
		t.Errorf("%v is left", s.counts)
	}
}

func TestParseLost(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want uint64
	}{
		"a kernel": {
			"TcpExt: SyncookiesSent ListenOverflows ListenDrops TCPReqQFullDrop\nTcpExt: 9 1 20 300\nIpExt: ListenDrops\nIpExt: 7\n", 321,
		},
		"a kernel without them": {"TcpExt: SyncookiesSent\nTcpExt: 9\n", 0},
		"fewer values":          {"TcpExt: A ListenDrops\nTcpExt: 9\n", 0},
		"no file":               {"", 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := parseLost(tc.text); got != tc.want {
				t.Errorf("%d, want %d", got, tc.want)
			}
		})
	}
}
