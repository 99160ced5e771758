// Package httpapi is the HTTP client that all model APIs share: one call of a model, bounded in time and size, whose
// failures are the errors of package model.
//
// It does not depend on the format of requests and answers. A model begins a Call and sends one or more
// requests in it. Its Decoder turns each Answer, a stream of events or one JSON document, into deltas:
//
//	Client ─ Begin ─▶ Call ─ Send ─▶ Answer ─ Relay ─▶ Decoder
//	                   │ the key, read anew; timeouts
//	                   │ statuses, web pages, redirects → typed errors
//	                   └ all messages, without the key in them
//
// The endpoint is not trusted: nothing it does may block the caller, grow its memory without bound, or bring the key
// into a message.
package httpapi

import (
	"cmp"
	"crypto/x509"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode"

	"github.com/deckhand-dev/deckhand/internal/shared/clock"
	"github.com/deckhand-dev/deckhand/runner/internal/address"
	"github.com/deckhand-dev/deckhand/runner/internal/deadpath"
	"github.com/deckhand-dev/deckhand/runner/internal/httpclient"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/provider"
)

// The defaults of FirstByte and BetweenBytes: for a hosted provider, and for a server of the user, which may take
// minutes to read a long prompt on slow hardware.
const (
	IdleHosted    = 2 * time.Minute
	IdleOwnServer = 15 * time.Minute
)

// Sources of a row of a dialect that are no address.
const (
	// RecordedAnswers are answers of providers, with which the adapters are tested.
	RecordedAnswers = "recorded answers"
	// NoSource means that no documentation was found.
	NoSource = "no source"
)

// answerTime is how much longer than FirstByte the default of Total is.
const answerTime = time.Hour

// withDefaults returns t with defaults for what is zero.
func withDefaults(t provider.Timeouts, idle time.Duration) provider.Timeouts {
	t.FirstByte = cmp.Or(t.FirstByte, idle)
	t.BetweenBytes = cmp.Or(t.BetweenBytes, idle)
	t.Total = cmp.Or(t.Total, t.FirstByte+answerTime)
	return t
}

// Dialect returns the dialect of the provider that Options name, if they are
// complete.
func Dialect[D any](o provider.Options, dialects map[string]D) (D, error) {
	d, ok := dialects[o.Provider]
	if !ok {
		providers := slices.Sorted(maps.Keys(dialects))
		return d, fmt.Errorf("provider %q is not one of %s", o.Provider, strings.Join(providers, ", "))
	}
	if o.Model == "" {
		return d, errors.New("the model's name is empty")
	}
	return d, nil
}

// A Client calls one endpoint. It follows no redirect: that would send the key and
// the session elsewhere.
type Client struct {
	provider.Options
	http atomic.Pointer[http.Client]
}

// New returns a Client with defaults for missing Options. idle is the default of FirstByte and BetweenBytes. keyHeaders
// are the headers for the Key, each with the prefix of its value.
func New(o provider.Options, idle time.Duration, keyHeaders map[string]string) *Client {
	o.Timeouts = withDefaults(o.Timeouts, idle)
	if o.Sign == nil {
		o.Sign = signWithKey(o.Key, keyHeaders)
	}
	o.Now = clock.Or(o.Now)
	c := &Client{Options: o}
	c.http.Store(c.newHTTPClient())
	return c
}

func (c *Client) newHTTPClient() *http.Client {
	rt := c.Transport
	if rt == nil {
		rt = NewTransport()
	}
	return httpclient.New(rt)
}

// Join is Join for the stream of one call. After a failure that is retried, the next call opens a new connection: the
// old one may lead to the same broken server, and HTTP/2 would reuse it.
func (c *Client) Join(stream iter.Seq2[model.Delta, error]) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		used := c.http.Load()
		Join(stream)(func(d model.Delta, err error) bool {
			_, notAModel := errors.AsType[*model.NotAModelError](err)
			if notAModel || model.Transient(err) {
				c.reconnect(used)
			}
			return yield(d, err)
		})
	}
}

// reconnect replaces the connections of used, unless another call did or the Options have a
// Transport. Calls that still read from them go on.
func (c *Client) reconnect(used *http.Client) {
	if c.Transport == nil && !c.http.CompareAndSwap(used, c.newHTTPClient()) {
		return
	}
	used.CloseIdleConnections()
}

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

// Parse splits the address of an endpoint into a base URL, without a slash at its end, and a query. An address with a
// credential is refused, and no error quotes it.
func Parse(raw string) (base, query string, err error) {
	if raw == "" {
		return "", "", errors.New("the endpoint is empty: write one such as http://ollama:11434/v1")
	}
	u, err := url.Parse(raw)
	if err != nil {
		return "", "", errors.New("the endpoint is not a URL") // url's own error would quote it, password included
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return "", "", fmt.Errorf("endpoint %q is not a http or https URL", u.Redacted())
	case u.User != nil:
		return "", "", errors.New("the endpoint holds a credential: leave it out, and give it as the key of the model")
	}
	query = u.RawQuery
	u.RawQuery, u.Fragment = "", ""
	return strings.TrimRight(u.String(), "/"), query, nil
}

// dialTimeout is short because failed connections are tried again.
const dialTimeout = 10 * time.Second

// A connection of HTTP/2 on which no frame came for pingAfter is sent a ping, and ends if
// no answer comes within pingTimeout. Behind a proxy, only this finds a dead path.
const (
	pingAfter   = 10 * time.Second
	pingTimeout = 5 * time.Second
)

// pathTimeouts bound how long a dead path stays undetected.
type pathTimeouts struct {
	// tcp is the longest time without an acknowledgement.
	tcp time.Duration
	// pingAfter and ping are for HTTP/2.
	pingAfter, ping time.Duration
}

// deadPath are the pathTimeouts of each Client: together less than 20 s.
var deadPath = pathTimeouts{tcp: deadpath.Limit, pingAfter: pingAfter, ping: pingTimeout}

// NewTransport returns the default network of a Client, for Transports that wrap it.
func NewTransport() http.RoundTripper { return transport(deadPath) }

// transport returns a transport that ends connections whose path is dead.
func transport(p pathTimeouts) *http.Transport {
	t := httpclient.Transport(deadpath.Watch(address.DialContext(&net.Dialer{Timeout: dialTimeout}), p.tcp))
	t.HTTP2 = &http.HTTP2Config{SendPingTimeout: p.pingAfter, PingTimeout: p.ping}
	return t
}

// signWithKey returns the Sign of a key, which is sent in each of the headers after a prefix.
// A request that has such a header keeps it.
func signWithKey(key func() (string, error), headers map[string]string) func(*http.Request) error {
	if key == nil {
		return nil
	}
	return func(req *http.Request) error {
		secret, err := key()
		if err != nil || secret == "" {
			return err
		}
		for name, prefix := range headers {
			if req.Header.Get(name) == "" {
				req.Header.Set(name, prefix+secret)
			}
		}
		return nil
	}
}

// sign authenticates a request and records what that added to its headers.
func (c *Call) sign(req *http.Request) error {
	c.secrets = nil
	if c.client.Sign == nil {
		return nil
	}
	before := req.Header.Clone()
	if err := c.client.Sign(req); err != nil {
		if unauthorized, ok := errors.AsType[*model.UnauthorizedError](err); ok {
			return unauthorized
		}
		return &model.NoCredentialError{Message: err.Error()}
	}
	for name, values := range req.Header {
		if !slices.Equal(values, before[name]) {
			c.secrets = append(c.secrets, secretsIn(values)...)
		}
	}
	if slices.ContainsFunc(c.secrets, func(secret string) bool { return strings.ContainsFunc(secret, unicode.IsControl) }) {
		return &model.UnauthorizedError{Message: "the key holds a character that no header may hold"}
	}
	return nil
}

// secretsIn returns the values of a header without the scheme before a space, such as Bearer.
func secretsIn(values []string) []string {
	var secrets []string
	for _, value := range values {
		if _, after, ok := strings.Cut(value, " "); ok {
			value = after
		}
		if value != "" {
			secrets = append(secrets, value)
		}
	}
	return secrets
}

// untrusted returns the error for a connection that fails until a configuration is changed, or nil. An expired
// certificate does not count, because it is renewed sooner or later.
func (c *Call) untrusted(err error) error {
	_, isUnknown := errors.AsType[x509.UnknownAuthorityError](err)
	_, isOther := errors.AsType[x509.HostnameError](err)
	refused, isRefused := errors.AsType[*address.RefusedError](err)
	switch {
	case isUnknown || isOther:
		return &model.CertificateError{Message: c.Clean(err).Error(), Unknown: isUnknown}
	case isRefused:
		return &model.AddressError{Message: refused.Error()}
	case errors.Is(err, http.ErrSchemeMismatch):
		c.contentType = "HTTP to a request with HTTPS"
		return c.final("write http:// in it, or start the server with TLS")
	}
	return nil
}
