package egress

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"time"
)

// Bounds of the proxy. Whoever uses it is not trusted.
const (
	maxConnections   = 64
	maxHeaders       = 32 << 10
	headerTimeout    = 10 * time.Second // for a request to say what it wants
	keepAliveTimeout = 30 * time.Second // between two requests
	idleTimeout      = 5 * time.Minute  // of a tunnel in which nothing moves
	dialTimeout      = 10 * time.Second // for one address to answer
	responseTimeout  = 5 * time.Minute  // for a host to begin its answer
)

// Options are what a proxy is made of.
type Options struct {
	// Hosts are those that are reached: exact, as *.suffix, or either with a port.
	// Without any the proxy refuses everything.
	Hosts []string
	// Log is told once of each host that was asked for, and whether it is one of
	// Hosts. May be nil.
	Log func(host string, allowed bool)
	// Resolve finds the addresses of a name. Nil: as this machine does.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Dial connects to an address that was judged. Nil: as this machine does.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Serve is the proxy, on a unix socket, until ctx ends.
func Serve(ctx context.Context, socket string, o Options) error {
	p, err := newProxy(o)
	if err != nil {
		return err
	}
	l, err := listen(ctx, socket)
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler:           p,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       keepAliveTimeout,
		MaxHeaderBytes:    maxHeaders,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), // of interest to nobody
	}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	if err := server.Serve(newBoundedListener(l)); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving the proxy at %s: %w", socket, err)
	}
	return nil
}

// listen makes the socket, in place of one that a runner before this has left.
func listen(ctx context.Context, socket string) (net.Listener, error) {
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("removing the proxy's socket of a runner before: %w", err)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("listening for the proxy: %w", err)
	}
	if err := os.Chmod(socket, 0o660); err != nil {
		_ = l.Close() // nobody has connected
		return nil, fmt.Errorf("listening for the proxy: %w", err)
	}
	return l, nil
}

// A bounded listener holds so many connections at once; more wait.
type boundedListener struct {
	net.Listener
	slots chan struct{}
	done  chan struct{}
	stop  func()
}

func newBoundedListener(l net.Listener) *boundedListener {
	done := make(chan struct{})
	return &boundedListener{Listener: l, slots: make(chan struct{}, maxConnections), done: done, stop: sync.OnceFunc(func() { close(done) })}
}

// Accept waits for room, and then for a connection.
func (b *boundedListener) Accept() (net.Conn, error) {
	select {
	case b.slots <- struct{}{}:
	case <-b.done:
		return nil, net.ErrClosed
	}
	conn, err := b.Listener.Accept()
	if err != nil {
		<-b.slots
		return nil, err //nolint:wrapcheck // net/http looks at it
	}
	return &boundedConn{Conn: conn, leave: sync.OnceFunc(func() { <-b.slots })}, nil
}

// Close ends waiting for room as well.
func (b *boundedListener) Close() error {
	b.stop()
	return b.Listener.Close() //nolint:wrapcheck // net/http looks at it
}

// A counted connection makes room when it is closed.
type boundedConn struct {
	net.Conn
	leave func()
}

// Close makes room.
func (c *boundedConn) Close() error {
	c.leave()
	return c.Conn.Close() //nolint:wrapcheck // net/http looks at it
}
