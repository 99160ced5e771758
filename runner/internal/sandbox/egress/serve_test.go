package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener whose connections are pipes, for tests in a bubble.
type pipes struct {
	made chan net.Conn
	done chan struct{}
}

func newPipes() *pipes { return &pipes{made: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case conn := <-p.made:
		return conn, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	close(p.done)
	return nil
}

func (*pipes) Addr() net.Addr { return &net.UnixAddr{} }

// dial connects, or waits for room.
func (p *pipes) dial() net.Conn {
	near, far := net.Pipe()
	p.made <- far
	return near
}

// servePipes serves a proxy in a bubble. Its only host answers with what it hears.
func servePipes(t *testing.T) *pipes {
	t.Helper()
	echoes := func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		go func() {
			_, _ = io.Copy(far, far)
			_ = far.Close()
		}()
		return near, nil
	}
	resolve := func(context.Context, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("93.184.216.34")}, nil
	}
	p, err := newProxy(Options{Hosts: []string{"good.example"}, Resolve: resolve, Dial: echoes})
	if err != nil {
		t.Fatal(err)
	}
	l, done := newPipes(), make(chan error, 1)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { done <- p.serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return l
}

// tunnel opens a tunnel to the host.
func (p *pipes) tunnel(t *testing.T) net.Conn {
	conn := p.dial()
	fmt.Fprint(conn, "CONNECT good.example:443 HTTP/1.1\r\nHost: good.example:443\r\n\r\n")
	if status, text := read(t, conn, http.MethodConnect); status != http.StatusOK {
		t.Errorf("%d: %s", status, text)
	}
	return conn
}

// A command may open as many connections as it likes: those beyond the bound wait until
// another ends, and cost the runner nothing.
func TestConnectionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := servePipes(t)
		var held []net.Conn
		for range maxConnections {
			held = append(held, l.tunnel(t))
		}
		served := 0
		for range 2 {
			go func() {
				held = append(held, l.tunnel(t))
				served++
			}()
		}
		for _, want := range []int{0, 1, 2} {
			synctest.Wait()
			if served != want {
				t.Errorf("after %d ended, %d more are served", want, served)
			}
			_ = held[want].Close()
		}
		for _, conn := range held {
			_ = conn.Close()
		}
	})
}

// The end of the proxy ends a wait for room.
func TestABoundedListenerIsClosedWhileItIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBoundedListener(newPipes())
		for range maxConnections {
			b.slots <- struct{}{}
		}
		got := make(chan error)
		go func() {
			_, err := b.Accept()
			got <- err
		}()
		synctest.Wait()
		_ = b.Close()
		if err := <-got; !errors.Is(err, net.ErrClosed) {
			t.Errorf("Accept() = %v", err)
		}
	})
}

// A tunnel lasts as long as data flows, in either direction, and ends without.
func TestATunnelEndsWithoutData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn := servePipes(t).tunnel(t)
		began := time.Now()
		for time.Since(began) < 3*idleTimeout {
			time.Sleep(idleTimeout - time.Second)
			fmt.Fprint(conn, "x")
			if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
				t.Fatalf("after %s: %v", time.Since(began), err)
			}
		}
		idle := time.Now()
		if n, err := conn.Read(make([]byte, 1)); err == nil || time.Since(idle) != idleTimeout {
			t.Errorf("read %d bytes after %s without data: %v", n, time.Since(idle), err)
		}
	})
}

// Only the runner and the group of the sandbox may connect.
func TestTheSocketIsOfItsGroup(t *testing.T) {
	dir, err := os.MkdirTemp("", "egress") //nolint:usetesting // the name of a socket has to be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "proxy.sock")
	for range 2 { // the second replaces the first
		l, err := listen(t.Context(), socket)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if info, err := os.Stat(socket); err != nil || info.Mode().Perm() != 0o660 {
			t.Errorf("the socket is %v, %v", info, err)
		}
	}
}
