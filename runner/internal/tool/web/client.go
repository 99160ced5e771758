package web

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/deckhand-dev/deckhand/runner/tool"
)

const (
	userAgent    = "Deckhand"
	maxRedirects = 5
	// maxHeaders bounds the headers of a response, in bytes.
	maxHeaders = 64 << 10
	handshake  = 10 * time.Second
)

// An addressError means that the address of a connection is not allowed.
type addressError struct{ addr netip.Addr }

func (e *addressError) Error() string {
	return fmt.Sprintf("the address %s may not be reached", e.addr)
}

// newClient returns a client that connects only to allowed hosts and addresses.
func (o Options) newClient() (*http.Client, hosts, error) {
	r, err := o.readTargets()
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
			// If a reused connection is broken, net/http repeats a request that has an
			// Idempotency-Key, and the server may ignore that key.
			DisableKeepAlives: true,
		},
		CheckRedirect: r.redirect,
	}, r.hosts, nil
}

// control implements net.Dialer.ControlContext: it checks an address before the
// connection is made.
func (r targets) control(_ context.Context, _, address string, _ syscall.RawConn) error {
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

// redirect implements http.Client.CheckRedirect: it checks the next request like the
// first. Headers of the model are not sent to another origin.
func (r targets) redirect(next *http.Request, via []*http.Request) error {
	next.Header.Del("Referer") // a query may contain secrets
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
		if !sameOrigin(hop.URL, via[0].URL) { // also if a later redirect returns to the origin
			strip(next.Header)
			break
		}
	}
	return nil
}

func sameOrigin(a, b *url.URL) bool {
	return a.Hostname() == b.Hostname() && port(a) == port(b)
}

// port returns the port of a URL. The default ports of http and https are equal: a
// redirect from https to http is refused elsewhere.
func port(u *url.URL) string {
	switch p := u.Port(); p {
	case "", "80", "443":
		return ""
	default:
		return p
	}
}

// strip removes headers that may contain credentials.
func strip(h http.Header) {
	for name := range h {
		switch strings.ToLower(name) {
		case "accept", "accept-language", "content-type", "user-agent":
		default:
			h.Del(name)
		}
	}
}

// A policyError means that the policy of the session does not allow the target of
// a redirect.
type policyError struct{ refused *tool.Error }

func (e *policyError) Error() string { return e.refused.Message }

// authorizing returns a client that follows a redirect only if the policy of the
// session allows a call that requests its target. args returns the arguments of that
// call. The checks of the client itself are first.
func authorizing(client *http.Client, call tool.Call, args func(*http.Request) any) *http.Client {
	if call.Session == nil {
		return client
	}
	judged := *client
	judged.CheckRedirect = func(next *http.Request, via []*http.Request) error {
		if err := client.CheckRedirect(next, via); err != nil {
			return err
		}
		if refused := call.Session.Authorize(next.Context(), encode(args(next))); refused != nil {
			to := *next.URL
			return &redirectError{to: &to, err: &policyError{refused}}
		}
		return nil
	}
	return &judged
}

// encode returns arguments in canonical form.
func encode(args any) json.RawMessage {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(args) // strings and numbers only: cannot fail
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
