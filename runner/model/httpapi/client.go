package httpapi

import (
	"cmp"
	"net/http"
	"strings"
	"time"
)

// How patient a Client is unless Options say otherwise.
const (
	DefaultIdleTimeout = 2 * time.Minute
	DefaultCallTimeout = 15 * time.Minute
)

// maxHeader bounds the header of an answer.
const maxHeader = 256 << 10

// Options say how an endpoint is spoken to, and for how long it is waited for.
type Options struct {
	// Headers are sent with each request, over the wire's own.
	Headers map[string]string
	// Key is asked before each call, because Secrets rotate. Nil is no key.
	Key func() (string, error)
	// IdleTimeout bounds the time without a byte, CallTimeout the whole call.
	IdleTimeout, CallTimeout time.Duration
	// Transport and Now replace the network and the clock; both may be nil.
	Transport http.RoundTripper
	Now       func() time.Time
}

// A Client speaks to one endpoint. It follows no redirect: that would take the
// key and the session elsewhere.
type Client struct {
	Options
	http *http.Client
}

// New is a Client with the defaults in place of what Options leave out.
func New(o Options) *Client {
	o.IdleTimeout = cmp.Or(o.IdleTimeout, DefaultIdleTimeout)
	o.CallTimeout = cmp.Or(o.CallTimeout, DefaultCallTimeout)
	if o.Transport == nil {
		o.Transport = transport()
	}
	if o.Now == nil {
		o.Now = clock
	}
	return &Client{Options: o, http: &http.Client{Transport: o.Transport, CheckRedirect: refuseRedirect}}
}

// transport is the standard one with less trust in headers.
func transport() http.RoundTripper {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport // somebody's own, who knows what is in it
	}
	t = t.Clone()
	t.MaxResponseHeaderBytes = maxHeader
	return t
}

func refuseRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// setHeaders puts our own headers, and then those of the Options, on a request.
func (c *Client) setHeaders(req *http.Request) {
	req.Header.Set("User-Agent", "deckhand")
	for name, value := range c.Headers {
		req.Header.Set(name, value)
		if strings.EqualFold(name, "Host") {
			req.Host = value
		}
	}
}
