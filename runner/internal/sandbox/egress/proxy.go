// Package egress is the egress proxy of a sandbox: an HTTP proxy that the runner
// serves on a unix socket and that programs in the sandbox use as HTTP_PROXY and
// HTTPS_PROXY.
//
// It connects only to the hosts that the Agent lists, by default none, and only to
// public addresses. It checks the address that it dials, so a listed name cannot
// lead into the cluster or to the metadata service of a cloud. It resolves names,
// because programs in a sandbox cannot. It does not read what a tunnel carries.
package egress

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/address"
	"github.com/deckhand-dev/deckhand/runner/task"
)

const (
	// maxLogged bounds the hosts that are remembered as logged.
	maxLogged = 1024
	// maxAddresses is how many addresses of a name are tried.
	maxAddresses = 4
)

// A proxy connects programs to allowed hosts.
type proxy struct {
	Options

	hosts   []host
	forward *httputil.ReverseProxy

	mu     sync.Mutex
	logged map[string]bool
}

func newProxy(o Options) (*proxy, error) {
	hosts, err := readHosts(o.Hosts)
	if err != nil {
		return nil, fmt.Errorf("reading the hosts of the egress proxy: %w", err)
	}
	if o.Resolve == nil {
		o.Resolve = resolve
	}
	if o.Dial == nil {
		o.Dial = (&net.Dialer{Timeout: dialTimeout}).DialContext
	}
	p := &proxy{Options: o, hosts: hosts, logged: map[string]bool{}}
	p.forward = &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.Out.Host = r.Out.URL.Host },
		FlushInterval: -1, // pass streams on at once
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, err error) { writeError(w, err) },
		ErrorLog:      slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
		Transport: &http.Transport{
			DialContext:            func(ctx context.Context, _, to string) (net.Conn, error) { return p.dialAllowed(ctx, to) },
			DisableKeepAlives:      true, // no connection is reused for another host
			DisableCompression:     true,
			MaxResponseHeaderBytes: maxHeaders,
			ResponseHeaderTimeout:  responseTimeout,
		},
	}
	return p, nil
}

func resolve(ctx context.Context, name string) ([]netip.Addr, error) {
	return net.DefaultResolver.LookupNetIP(ctx, "ip", name) //nolint:wrapcheck // reach does
}

// ServeHTTP implements [http.Handler].
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodConnect:
		p.connect(w, r)
	case r.URL.Scheme == "http" && r.URL.Host != "":
		p.forward.ServeHTTP(w, r)
	default:
		http.Error(w, "this is a proxy: ask it to CONNECT to a host and port, or for a whole http:// URL", http.StatusBadRequest)
	}
}

// A refusal means that a host is not allowed.
type refusal struct{ text string }

func (r *refusal) Error() string { return r.text }

// writeError answers with the reason why there is no connection.
func writeError(w http.ResponseWriter, err error) {
	if no, ok := errors.AsType[*refusal](err); ok {
		http.Error(w, no.text, http.StatusForbidden)
		return
	}
	http.Error(w, "the host was not reached: "+err.Error(), http.StatusBadGateway)
}

// dialAllowed connects to a listed host at a public address.
func (p *proxy) dialAllowed(ctx context.Context, to string) (net.Conn, error) {
	named, port, err := net.SplitHostPort(to)
	if err != nil || !isPort(port) {
		p.refused("", "", task.RefusedNotListed)
		return nil, &refusal{fmt.Sprintf("%.300q is no host and port", to)}
	}
	name, ok := canonical(named)
	if !ok {
		p.refused("", "", task.RefusedNotListed)
		return nil, &refusal{fmt.Sprintf("%.300q is no host name", named)}
	}
	allowed := slices.ContainsFunc(p.hosts, func(h host) bool { return h.matches(name, port) })
	p.logOnce(name, allowed)
	if !allowed {
		p.refused(name, port, task.RefusedNotListed)
		return nil, &refusal{fmt.Sprintf("%s at port %s is not among the hosts that this sandbox may reach; to open it, add the host to sandbox.egress.hosts of the Agent", name, port)}
	}
	public, err := p.addresses(ctx, name)
	if err != nil {
		if _, no := errors.AsType[*refusal](err); no {
			p.refused(name, port, task.RefusedNotPublic)
		}
		return nil, err
	}
	return p.dial(ctx, public, port)
}

// addresses returns the public addresses of a name.
func (p *proxy) addresses(ctx context.Context, name string) ([]netip.Addr, error) {
	all, err := p.lookup(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("resolving %s: %w", name, err)
	}
	public := slices.DeleteFunc(slices.Clone(all), func(a netip.Addr) bool { return address.Of(a) != address.Public })
	if len(public) == 0 {
		return nil, &refusal{name + " leads to no public address; addresses of this machine, of the cluster and of other private networks are not reached from a sandbox"}
	}
	return public[:min(len(public), maxAddresses)], nil
}

// lookup resolves a name. An address resolves to itself.
func (p *proxy) lookup(ctx context.Context, name string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(name); err == nil {
		return []netip.Addr{a}, nil
	}
	return p.Resolve(ctx, name)
}

// dial connects to the first address that answers.
func (p *proxy) dial(ctx context.Context, addresses []netip.Addr, port string) (net.Conn, error) {
	var failed error
	for _, a := range addresses {
		conn, err := p.Dial(ctx, "tcp", net.JoinHostPort(a.Unmap().String(), port))
		if err == nil {
			return conn, nil
		}
		failed = errors.Join(failed, err)
	}
	return nil, fmt.Errorf("connecting: %w", failed)
}

func (p *proxy) refused(host, port, reason string) {
	if p.Refused != nil {
		p.Refused(host, port, reason)
	}
}

// logOnce logs the first request for each host.
func (p *proxy) logOnce(name string, allowed bool) {
	if p.Log == nil {
		return
	}
	p.mu.Lock()
	before := p.logged[name] || len(p.logged) >= maxLogged
	if !before {
		p.logged[name] = true
	}
	p.mu.Unlock()
	if !before {
		p.Log(name, allowed)
	}
}

// connect serves CONNECT.
func (p *proxy) connect(w http.ResponseWriter, r *http.Request) {
	far, err := p.dialAllowed(r.Context(), r.Host)
	if err != nil {
		writeError(w, err)
		return
	}
	defer far.Close()
	near, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, "tunnels are for HTTP/1.1", http.StatusHTTPVersionNotSupported)
		return
	}
	defer near.Close()
	if _, err := io.WriteString(near, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	said := io.MultiReader(io.LimitReader(buffered, int64(buffered.Reader.Buffered())), near)
	end := func() { _, _ = near.Close(), far.Close() } // ends the copies
	defer context.AfterFunc(r.Context(), end)()
	idleTimer := time.AfterFunc(idleTimeout, end)
	defer idleTimer.Stop()
	tunnel(near, activityReader{said, idleTimer}, activityReader{far, idleTimer}, far)
}

// tunnel copies in both directions until both have ended.
func tunnel(near net.Conn, said, answers io.Reader, far net.Conn) {
	back := make(chan struct{})
	go func() {
		defer close(back)
		copyOneWay(near, answers, far)
	}()
	copyOneWay(far, said, near)
	<-back
}

// copyOneWay copies in one direction and then closes the writing side.
func copyOneWay(to net.Conn, from io.Reader, source io.Closer) {
	_, err := io.Copy(to, from)
	inner := to
	if c, ok := to.(*boundedConn); ok {
		inner = c.Conn
	}
	half, ok := inner.(interface{ CloseWrite() error })
	if err != nil || !ok || half.CloseWrite() != nil {
		_ = to.Close()     // the other direction ends too
		_ = source.Close() // as above
	}
}

// An activityReader resets the idle timer whenever it reads data.
type activityReader struct {
	io.Reader
	idleTimer *time.Timer
}

// Read implements [io.Reader].
func (a activityReader) Read(b []byte) (int, error) {
	n, err := a.Reader.Read(b)
	if n > 0 {
		a.idleTimer.Reset(idleTimeout)
	}
	return n, err //nolint:wrapcheck // io.Copy looks at it
}
