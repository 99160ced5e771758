// Package httpclient makes the HTTP clients of the runner, so that all have the same bounds.
package httpclient

import (
	"context"
	"net"
	"net/http"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/address"
)

// Bounds of all clients.
const (
	// handshakeTimeout bounds the handshake of TLS.
	handshakeTimeout = 10 * time.Second
	// idleTimeout is how long an unused connection is kept.
	idleTimeout = 90 * time.Second
	// maxIdle bounds the connections that are kept.
	maxIdle = 100
	// maxHeaders bounds the headers of an answer, in bytes.
	maxHeaders = 256 << 10
)

// Transport returns a transport whose connections dial makes. It uses the proxy of the environment.
// The caller may change it before the first request.
func Transport(dial func(ctx context.Context, network, to string) (net.Conn, error)) *http.Transport {
	return &http.Transport{
		Proxy:                  address.Proxy,
		DialContext:            dial,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    handshakeTimeout,
		IdleConnTimeout:        idleTimeout,
		MaxIdleConns:           maxIdle,
		MaxResponseHeaderBytes: maxHeaders,
	}
}

// New returns a client that follows no redirect: its credential is only for the host of a spec. A
// redirect is the answer.
func New(t http.RoundTripper) *http.Client {
	return &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
