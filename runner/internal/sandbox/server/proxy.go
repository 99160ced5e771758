//go:build linux

package server

import (
	"context"
	"io"
	"net"
	"time"
)

const (
	// maxTunnels is how many connections the proxy passes on at once.
	maxTunnels = 64
	// dialTimeout is how long the runner's end may take to accept one.
	dialTimeout = 5 * time.Second
	// maxRequest is how much of a request is taken in that gets no answer.
	maxRequest = 64 << 10
)

// unavailableAnswer is what a program reads when the runner serves no proxy.
const unavailableAnswer = "HTTP/1.1 502 Bad Gateway\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n" +
	"The way out of this sandbox is closed: its runner does not serve a proxy at the moment.\n"

// A tunnel passes connections on loopback to the runner's socket, which decides
// what becomes of them; bytes are all that it sees.
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

// relay copies both ways until one is done in each.
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

// answerUnavailable answers for a proxy that is not there. It takes in what was asked:
// a connection that is closed before loses the answer.
func (t *tunnel) answerUnavailable(near net.Conn) {
	_ = near.SetDeadline(t.now().Add(dialTimeout)) // fails only on a connection that fails anyway
	if _, err := io.WriteString(near, unavailableAnswer); err != nil {
		return
	}
	if half, ok := near.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_, _ = io.Copy(io.Discard, io.LimitReader(near, maxRequest)) // nobody needs it
	}
}

// copyOneWay copies one way and passes its end on.
func copyOneWay(to, from net.Conn) {
	_, err := io.Copy(to, from)
	half, ok := to.(interface{ CloseWrite() error })
	if err != nil || !ok || half.CloseWrite() != nil {
		_ = to.Close()   // the other way ends as well
		_ = from.Close() // as above
	}
}
