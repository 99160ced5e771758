// Package deadpath ends connections whose network path is dead.
//
// The kernel of a server acknowledges packets even if the server takes minutes to answer. A path is dead if packets
// that were sent, or the keep-alives of an idle connection, are not acknowledged.
//
// TCP_USER_TIMEOUT is not used because it also ends connections to live servers that acknowledge everything, but have
// not read a request for so long that their receive window is full. https://git.kernel.org/torvalds/c/9d9b1ee0b2d1
package deadpath

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"sync/atomic"
	"syscall"
	"time"
)

// Limit is the longest time without an acknowledgement, the time of six retransmissions
// or three keep-alives.
const Limit = 15 * time.Second

// An Error means that a connection ended because its path was dead.
type Error struct {
	Addr  net.Addr
	After time.Duration
}

func (e *Error) Error() string {
	return fmt.Sprintf("the connection is dead: %s acknowledged nothing for %s", e.Addr, e.After)
}

// A Dial makes connections, as [net.Dialer.DialContext] does.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Watch returns a Dial whose TCP connections end with an *Error once their path has been dead
// for limit, which is at least 3 s. On systems other than Linux, only idle connections do.
func Watch(dial Dial, limit time.Duration) Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		tcp, ok := c.(*net.TCPConn)
		if err != nil || !ok {
			return c, err
		}
		// One keep-alive more than fits into limit, so that the timer ends the connection
		// before the kernel does.
		every := limit / 3
		err = tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: every, Interval: every, Count: 3})
		if err != nil {
			_ = tcp.Close() // nothing was sent
			return nil, fmt.Errorf("setting the keep-alive of a connection: %w", err)
		}
		return watch(tcp, limit), nil
	}
}

// conn is a connection that a timer checks.
type conn struct {
	net.Conn
	tcp   *net.TCPConn
	limit time.Duration
	timer *time.Timer
	dead  atomic.Bool
}

func watch(tcp *net.TCPConn, limit time.Duration) *conn {
	c := &conn{Conn: tcp, tcp: tcp, limit: limit}
	c.timer = time.AfterFunc(math.MaxInt64, c.check)
	c.timer.Reset(limit) // now that check can read c.timer
	return c
}

// check closes the connection if its path is dead, and otherwise sets the timer to the
// earliest time at which it can be.
func (c *conn) check() {
	s, ok := stateOf(c.tcp)
	switch {
	case !ok: // closed
	case s.isDead(c.limit):
		c.dead.Store(true)
		_ = c.tcp.Close() // Read and Write return the error
	default:
		c.timer.Reset(max(c.limit-s.silent, c.limit/16))
	}
}

// Close implements [net.Conn].
func (c *conn) Close() error {
	c.timer.Stop()
	return c.Conn.Close() //nolint:wrapcheck // as the connection itself would
}

// Read implements [net.Conn].
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	return n, c.explain(err)
}

// Write implements [net.Conn].
func (c *conn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	return n, c.explain(err)
}

// explain replaces the error of a dead connection, which otherwise reports that it was closed locally.
func (c *conn) explain(err error) error {
	if err != nil && (c.dead.Load() || errors.Is(err, syscall.ETIMEDOUT)) {
		return &Error{Addr: c.RemoteAddr(), After: c.limit}
	}
	return err
}

// state is the state of a connection in the kernel.
type state struct {
	silent time.Duration // since the last packet of the peer
	// retransmits and probes are packets in a row that were not acknowledged. Probes are
	// keep-alives, and questions for a full receive window; each answer resets them.
	retransmits, probes int
}

// isDead reports whether a live peer must have answered by now. One packet may be in transit.
func (s state) isDead(limit time.Duration) bool {
	return s.silent >= limit && (s.retransmits > 1 || s.probes > 1)
}
