//go:build linux

package server

import (
	"context"
	"io"
	"net"
	"time"
)

const (
	// maxTunnels bounds concurrent connections.
	maxTunnels = 64
	// dialTimeout is how long the runner may take to accept a connection.
	dialTimeout = 5 * time.Second
	// maxRequest bounds what is read of a request while no proxy is served, in bytes.
	maxRequest = 64 << 10
)

// unavailableAnswer is the answer while the runner serves no proxy.
const unavailableAnswer = "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n" +
	"The way out of this sandbox is closed: its runner does not serve a proxy at the moment.\n"

// A tunnel copies connections on loopback to the socket of the runner's egress
// proxy, which decides about them.
type tunnel struct {
	listener net.Listener
	socket   string
	slots    chan struct{} // holds a token for each connection
	now      func() time.Time
}

func newTunnel(l net.Listener, socket string, now func() time.Time) *tunnel {
	return &tunnel{listener: l, socket: socket, slots: make(chan struct{}, maxTunnels), now: now}
}

// serve accepts connections until the listener is closed.
func (t *tunnel) serve() {
	for {
		t.slots <- struct{}{}
		conn, err := t.listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer func() { <-t.slots }()
			defer conn.Close()
			t.relay(conn)
		}()
	}
}

// relay copies in both directions until both have ended.
func (t *tunnel) relay(near net.Conn) {
	far, err := (&net.Dialer{Timeout: dialTimeout}).DialContext(context.Background(), "unix", t.socket)
	if err != nil {
		t.answerUnavailable(near)
		return
	}
	defer far.Close()
	back := make(chan struct{})
	go func() {
		defer close(back)
		copyOneWay(near, far)
	}()
	copyOneWay(far, near)
	<-back
}

// answerUnavailable answers while there is no proxy. It reads the request first: if
// the connection is closed with unread data, the client may lose the answer.
func (t *tunnel) answerUnavailable(near net.Conn) {
	_ = near.SetDeadline(t.now().Add(dialTimeout)) // fails only on a connection that fails anyway
	if _, err := io.WriteString(near, unavailableAnswer); err != nil {
		return
	}
	if half, ok := near.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(near, maxRequest)) // not used
	}
}

// copyOneWay copies in one direction and then closes the writing side.
func copyOneWay(to, from net.Conn) {
	_, err := io.Copy(to, from)
	half, ok := to.(interface{ CloseWrite() error })
	if err != nil || !ok || half.CloseWrite() != nil {
		_ = to.Close()   // the other direction ends too
		_ = from.Close() // as above
	}
}
