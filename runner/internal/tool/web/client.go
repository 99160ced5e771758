package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"
)

const (
	userAgent    = "Deckhand"
	maxRedirects = 5
	// maxHeaders bounds the headers of an answer, in bytes.
	maxHeaders = 64 << 10
	handshake  = 10 * time.Second
)

// An addressError means that a connection was refused for its address.
type addressError struct{ addr netip.Addr }

func (e *addressError) Error() string {
	return fmt.Sprintf("the address %s may not be reached", e.addr)
}

// newClient makes a client that goes only where the rules allow.
func (o Options) newClient() (*http.Client, hosts, error) {
	r, err := o.reach()
	if err != nil {
		return nil, nil, err
	}
	dial := o.dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: handshake, ControlContext: r.control, Resolver: o.resolver}).DialContext
	}
	return &http.Client{
		Transport: &http.Transport{
			DialContext:            dial,
			ForceAttemptHTTP2:      true,
			TLSHandshakeTimeout:    handshake,
			MaxResponseHeaderBytes: maxHeaders,
			// A connection that was used before may turn out to be dead, and then Go
			// sends a request again that has an Idempotency-Key, without knowing whether
			// the server heeds it.
			DisableKeepAlives: true,
		},
		CheckRedirect: r.redirect,
	}, r.hosts, nil
}

// control is asked when the address of a connection is known, before it is made.
func (r reach) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("reading the address of a connection: %w", err)
	}
	if !r.allow(at.Addr()) {
		return &addressError{addr: at.Addr()}
	}
	return nil
}

// A redirectError means that a redirect was not followed.
type redirectError struct {
	to  *url.URL
	err error
}

func (e *redirectError) Error() string {
	return fmt.Sprintf("the redirect to %s is not followed: %v", show(e.to.Redacted()), e.err)
}

func (e *redirectError) Unwrap() error { return e.err }

var (
	errHops      = fmt.Errorf("there were more than %d", maxRedirects)
	errDowngrade = errors.New("it leads from https to http")
)

// redirect judges the next request of a redirect as the first was judged. What
// the model sends is for the host that it named, and does not go on to others.
func (r reach) redirect(next *http.Request, via []*http.Request) error {
	next.Header.Del("Referer") // it may hold what is secret in a query
	to := *next.URL
	switch err := r.hosts.admit(next.URL); {
	case err != nil:
		return &redirectError{to: &to, err: err}
	case len(via) > maxRedirects:
		return &redirectError{to: &to, err: errHops}
	case via[len(via)-1].URL.Scheme == "https" && next.URL.Scheme == "http":
		return &redirectError{to: &to, err: errDowngrade}
	}
	for _, hop := range append(via[1:len(via):len(via)], next) {
		if !sameOrigin(hop.URL, via[0].URL) { // and not again when it comes back
			strip(next.Header)
			break
		}
	}
	return nil
}

func sameOrigin(a, b *url.URL) bool {
	return a.Hostname() == b.Hostname() && port(a) == port(b)
}

// port is the port of a URL. That of http counts as that of https: what is sent
// there in the clear the model has sent in the clear.
func port(u *url.URL) string {
	switch p := u.Port(); p {
	case "", "80", "443":
		return ""
	default:
		return p
	}
}

// strip leaves only headers that tell nothing about who asks.
func strip(h http.Header) {
	for name := range h {
		switch strings.ToLower(name) {
		case "accept", "accept-language", "content-type", "user-agent":
		default:
			h.Del(name)
		}
	}
}
