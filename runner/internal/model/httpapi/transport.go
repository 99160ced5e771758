package httpapi

import (
	"net"
	"net/http"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/address"
	"github.com/deckhand-dev/deckhand/runner/internal/deadpath"
	"github.com/deckhand-dev/deckhand/runner/internal/httpclient"
)

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
