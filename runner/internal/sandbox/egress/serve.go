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

// Bounds of the proxy. Its clients are not trusted.
const (
	maxConnections   = 64
	maxHeaders       = 32 << 10
	headerTimeout    = 10 * time.Second // for the headers of a request
	keepAliveTimeout = 30 * time.Second // between two requests
	idleTimeout      = 5 * time.Minute  // of a tunnel without data
	dialTimeout      = 10 * time.Second // for one address
	responseTimeout  = 5 * time.Minute  // for the headers of a response
)

// Options configure a proxy.
type Options struct {
	// Hosts are the allowed hosts: exact, as *.suffix, or either with a port. If it is
	// empty the proxy refuses all.
	Hosts []string
	// Log, if not nil, is called once for each requested host.
	Log func(host string, allowed bool)
	// Refused, if not nil, is called for each connection that is refused. The host is a valid
	// name or address, or empty if the program named none.
	Refused func(host, port, reason string)
	// Resolve returns the addresses of a name. Default: net.DefaultResolver.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	// Dial connects to a checked address. Default: net.Dialer.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Serve serves the proxy on a unix socket until ctx ends.
func Serve(ctx context.Context, socket string, o Options) error {
	p, err := newProxy(o)
	if err != nil {
		return err
	}
	l, err := listen(ctx, socket)
	if err != nil {
		return err
	}
	if err := p.serve(ctx, l); err != nil {
		return fmt.Errorf("serving the proxy at %s: %w", socket, err)
	}
	return nil
}

// serve serves the proxy on a listener until ctx ends, at most maxConnections connections at
// once.
func (p *proxy) serve(ctx context.Context, l net.Listener) error {
	server := &http.Server{
		Handler:           p,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       keepAliveTimeout,
		MaxHeaderBytes:    maxHeaders,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), // errors of clients are not logged
	}
	defer context.AfterFunc(ctx, func() { server.Close() })()
	if err := server.Serve(newBoundedListener(l)); !errors.Is(err, http.ErrServerClosed) {
		return err //nolint:wrapcheck // Serve does
	}
	return nil
}

// listen creates the socket and replaces one that an earlier runner has left.
func listen(ctx context.Context, socket string) (net.Listener, error) {
	if err := os.Remove(socket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("removing the proxy's socket of a runner before: %w", err)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("listening for the proxy: %w", err)
	}
	if err := os.Chmod(socket, 0o660); err != nil {
		_ = l.Close() // nothing has connected
		return nil, fmt.Errorf("listening for the proxy: %w", err)
	}
	return l, nil
}

// A boundedListener has at most maxConnections connections at once; more wait.
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

// Accept implements [net.Listener].
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

// Close implements [net.Listener].
func (b *boundedListener) Close() error {
	b.stop()
	return b.Listener.Close() //nolint:wrapcheck // net/http looks at it
}

// A boundedConn releases its slot when it is closed.
type boundedConn struct {
	net.Conn
	leave func()
}

// Close implements [net.Conn].
func (c *boundedConn) Close() error {
	c.leave()
	return c.Conn.Close() //nolint:wrapcheck // net/http looks at it
}
