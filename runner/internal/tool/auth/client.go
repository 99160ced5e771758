package auth

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/address"
	"github.com/deckhand-dev/deckhand/runner/internal/deadpath"
)

const (
	handshake    = 10 * time.Second
	maxRedirects = 5
	// maxHeaders bounds the headers of an answer, in bytes.
	maxHeaders = 64 << 10
)

// NewClient makes a client that reaches what Toolsets may. The proxy of the
// environment is used where there is one.
func NewClient() *http.Client {
	dialer := &net.Dialer{Timeout: handshake, ControlContext: address.Control}
	return &http.Client{Transport: &http.Transport{
		Proxy:                  address.Proxy,
		DialContext:            deadpath.Watch(dialer.DialContext, deadpath.Limit),
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    handshake,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: maxHeaders,
	}}
}

// ReadURL reads the URL of a Toolset. Its error says what to write instead.
func ReadURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil {
		if detail, ok := errors.AsType[*url.Error](err); ok {
			err = detail.Err
		}
		return nil, fmt.Errorf("%q is no URL: %w", raw, err)
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return nil, fmt.Errorf("%q must be an http or https URL: write https://host/path", raw)
	case u.User != nil:
		return nil, errors.New("the URL has a user or password before the host; put them into a Secret and name it in auth")
	case u.Fragment != "":
		return nil, fmt.Errorf("%q has a fragment, which is never sent: remove # and what follows", raw)
	}
	if err := address.CheckHost(u.Hostname()); err != nil {
		return nil, err //nolint:wrapcheck // it names the host
	}
	if address.IsLocal(u.Hostname()) {
		return nil, fmt.Errorf("%q is the runner itself; write the name of a Service, as in http://name.namespace.svc", raw)
	}
	return u, nil
}

// A RedirectError means that a redirect was not followed.
type RedirectError struct {
	To    *url.URL
	why   string
	cause error // an [address.RefusedError], or nil
}

func (e *RedirectError) Error() string {
	return fmt.Sprintf("the redirect to %s is not followed: %s", e.To.Redacted(), e.why)
}

// Unwrap is why, where the target is an address that no Toolset may reach.
func (e *RedirectError) Unwrap() error { return e.cause }

// redirect follows only within the origin.
func redirect(origin *url.URL) func(*http.Request, []*http.Request) error {
	return func(next *http.Request, via []*http.Request) error {
		next.Header.Del("Referer") // it may hold what is secret in a query
		if err := address.CheckHost(next.URL.Hostname()); err != nil {
			return &RedirectError{To: next.URL, why: err.Error(), cause: err}
		}
		refuse := func(why string) error { return &RedirectError{To: next.URL, why: why} }
		switch {
		case !within(next.URL, origin):
			return refuse("it leads to another host, or from https to http; if that is where it is to go, write that URL in the Toolset")
		case len(via) > maxRedirects:
			return refuse(fmt.Sprintf("there were more than %d", maxRedirects))
		}
		return nil
	}
}

// within reports whether a URL leads to the same place as another, or to the
// same host by https.
func within(u, origin *url.URL) bool {
	if !strings.EqualFold(u.Hostname(), origin.Hostname()) {
		return false
	}
	if u.Scheme == origin.Scheme {
		return port(u) == port(origin)
	}
	return origin.Scheme == "http" && u.Scheme == "https" && port(origin) == "80" && port(u) == "443"
}

func port(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}
