package httpapi

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/deckhand-dev/deckhand/internal/shared/clock"
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
		return "", "", errors.New("the endpoint holds a credential: leave it out, and give it as the key of the model")
	}
	query = u.RawQuery
	u.RawQuery, u.Fragment = "", ""
	return strings.TrimRight(u.String(), "/"), query, nil
}
