package httpapi

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/internal/clock"
)

// The timeouts of a Client unless Options say otherwise.
const (
	DefaultIdleTimeout = 2 * time.Minute
	DefaultCallTimeout = 15 * time.Minute
)

// maxHeader bounds the header of an answer.
const maxHeader = 256 << 10

// Options say which model answers, where, and how long to wait for it.
type Options struct {
	// Provider is one of the Provider constants of the package that gets the Options.
	Provider string
	// Name is the name under which steps record this model. Thinking, and blocks of
	// the provider's own, that are recorded under another name are not sent; empty
	// sends all of them.
	Name string
	// Model is the name by which the provider knows the model.
	Model string
	// Endpoint is the base URL. Most providers have a default.
	Endpoint string
	// Deployment is the name that Azure knows the model by, if it is another.
	// APIVersion, a date, is for an Azure resource that lacks the newer API. Other
	// providers have neither.
	Deployment, APIVersion string
	// Headers are sent with each request, over those of the API.
	Headers map[string]string
	// Key is asked before each call, because Secrets rotate. Nil or an empty key
	// sends none.
	Key func() (string, error)
	// IdleTimeout bounds the time without a byte, CallTimeout the whole call.
	IdleTimeout, CallTimeout time.Duration
	// Transport and Now replace the network and the clock; both may be nil.
	Transport http.RoundTripper
	Now       func() time.Time
}

// Dialect returns the dialect of the provider that Options name, if they are
// complete.
func Dialect[D any](o Options, dialects map[string]D) (D, error) {
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
	Options
	http *http.Client
}

// New returns a Client with defaults for what Options leave out.
func New(o Options) *Client {
	o.IdleTimeout = cmp.Or(o.IdleTimeout, DefaultIdleTimeout)
	o.CallTimeout = cmp.Or(o.CallTimeout, DefaultCallTimeout)
	if o.Transport == nil {
		o.Transport = transport()
	}
	o.Now = clock.Or(o.Now)
	return &Client{Options: o, http: &http.Client{Transport: o.Transport, CheckRedirect: refuseRedirect}}
}

// transport returns the standard transport with a bound on headers.
func transport() http.RoundTripper {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport // a replacement, whose type is unknown
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

// Parse splits the address of an endpoint into what a path is appended to,
// without a slash at its end, and a query. An address that holds a credential
// is refused, and quoted in no error.
func Parse(address string) (base, query string, err error) {
	if address == "" {
		return "", "", errors.New("the endpoint is empty: write one such as http://ollama:11434/v1")
	}
	u, err := url.Parse(address)
	if err != nil {
		return "", "", errors.New("the endpoint is not a URL") // url's own error would quote it, password included
	}
	switch {
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return "", "", fmt.Errorf("endpoint %q is not a http or https URL", u.Redacted())
	case u.User != nil:
		return "", "", errors.New("the endpoint holds a credential: put it into a Secret")
	}
	query = u.RawQuery
	u.RawQuery, u.Fragment = "", ""
	return strings.TrimRight(u.String(), "/"), query, nil
}
