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
	"strconv"
	"strings"
	"sync"
	"time"
)

// A host is an entry of the list: a name or a wildcard, with a port or without.
type host struct {
	name  string // in lower case; of a wildcard with a leading dot
	below bool
	port  string // empty: every port
}

// maxHosts bounds the number of entries.
const maxHosts = 1024

func readHosts(list []string) ([]host, error) {
	if len(list) > maxHosts {
		return nil, fmt.Errorf("%d hosts are too many; use *.example.com for those below one", len(list))
	}
	all := make([]host, 0, len(list))
	for _, entry := range list {
		h, ok := readHost(entry)
		if !ok {
			return nil, fmt.Errorf("%q is no host: write one such as proxy.golang.org, *.example.com for those below it, or example.com:8443 for one port, without scheme and path", entry)
		}
		all = append(all, h)
	}
	return all, nil
}

func readHost(entry string) (host, bool) {
	var h host
	name := entry
	if at, port, err := net.SplitHostPort(entry); err == nil {
		if !isPort(port) {
			return h, false
		}
		name, h.port = at, port
	}
	name, h.below = strings.CutPrefix(name, "*.")
	name, ok := canonical(strings.Trim(name, "[]"))
	if !ok || strings.Contains(name, "*") {
		return h, false
	}
	h.name = name
	if h.below {
		if _, err := netip.ParseAddr(name); err == nil {
			return h, false
		}
		h.name = "." + name
	}
	return h, true
}

func isPort(s string) bool {
	n, err := strconv.ParseUint(s, 10, 16)
	return err == nil && n > 0
}

// canonical returns a name as it is compared and resolved: in lower case without
// the final dot, or an address in its shortest form.
func canonical(name string) (string, bool) {
	if a, err := netip.ParseAddr(name); err == nil {
		return a.Unmap().WithZone("").String(), a.Zone() == ""
	}
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if name == "" || len(name) > 253 || strings.HasPrefix(name, ".") || strings.Contains(name, "..") || numeric(name) {
		return "", false
	}
	const known = "abcdefghijklmnopqrstuvwxyz0123456789.-_"
	return name, !strings.ContainsFunc(name, func(r rune) bool { return !strings.ContainsRune(known, r) })
}

// numeric reports whether the last label of a name is a number: some resolvers
// parse 0x7f.1 and 2130706433 as addresses.
func numeric(name string) bool {
	last := name[strings.LastIndexByte(name, '.')+1:]
	if hex, ok := strings.CutPrefix(last, "0x"); ok && strings.Trim(hex, "0123456789abcdef") == "" {
		return true
	}
	return strings.Trim(last, "0123456789") == ""
}

// matches reports whether the entry contains a canonical name and a port.
func (h host) matches(name, port string) bool {
	if h.port != "" && h.port != port {
		return false
	}
	if h.below {
		return len(name) > len(h.name) && strings.HasSuffix(name, h.name)
	}
	return name == h.name
}

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
	// Refused, if not nil, is called for each refused connection. The host is a valid name or address, or empty if the
	// program named none.
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

// listen creates the socket and replaces the socket of an earlier runner.
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
