package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/frame"
)

// How long the far end has for what is its part.
const (
	connectTimeout   = 30 * time.Second       // to come up, as after a restart
	retryPause       = 100 * time.Millisecond // between two tries
	handshakeTimeout = 10 * time.Second       // to answer on a new connection
	startTimeout     = 30 * time.Second       // to start a program
	describeTimeout  = 30 * time.Second       // to try its confinement and describe itself
	killTimeout      = 5 * time.Second        // to end a program that was killed
	lossTimeout      = 2 * time.Second        // between the ends of a process and of the session it went with
)

// A Client is a Sandbox behind a socket. Everything that it started ends with
// it: with Close, and with the process that it is in.
type Client struct {
	socket         string
	connectTimeout time.Duration

	openToken chan struct{} // holds one token while a session is being opened

	mu      sync.Mutex
	session *session // nil: none was opened
	closed  bool
}

var _ Sandbox = (*Client)(nil)

// Dial makes a client of the sandbox behind a unix socket. It connects when
// there is something to do, and again when the sandbox was restarted.
func Dial(socket string) *Client {
	return &Client{socket: socket, connectTimeout: connectTimeout, openToken: make(chan struct{}, 1)}
}

// A session is the connection that all processes live by.
type session struct {
	conn   *frame.Conn
	done   chan struct{} // closed when it ended
	memory atomic.Bool   // memory was nearly used up when last heard of
}

// lossDetail is what is said to a model after the end of a session.
func (s *session) lossDetail() string {
	if s.memory.Load() {
		return lostMemory
	}
	return lostRestarted
}

// receive reads what a session says, until its end.
func (s *session) receive() {
	defer close(s.done)
	defer s.conn.Close()
	for {
		f, err := s.conn.Expect(frame.Memory)
		if err != nil || len(f.Data) != 1 {
			return
		}
		s.memory.Store(f.Data[0] != 0)
	}
}

// Close ends the session, and with it everything that was started.
func (c *Client) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.session == nil {
		return nil
	}
	if err := c.session.conn.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return fmt.Errorf("closing the session with the sandbox: %w", err)
	}
	return nil
}

// current is the session that is open; nil: none is.
func (c *Client) current() (*session, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, net.ErrClosed
	}
	if c.session == nil {
		return nil, nil //nolint:nilnil // no session is an answer
	}
	select {
	case <-c.session.done:
		return nil, nil //nolint:nilnil // as above
	default:
		return c.session, nil
	}
}

// open gives the session, which it opens when there is none. It waits for a
// sandbox that is not there.
func (c *Client) open(ctx context.Context) (*session, error) {
	select {
	case c.openToken <- struct{}{}:
		defer func() { <-c.openToken }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, c.connectTimeout, ErrUnavailable)
	defer cancel()
	for {
		s, err := c.current()
		if s != nil || err != nil {
			return s, err
		}
		s, err = c.openOnce(ctx)
		if err == nil {
			return s, c.setSession(s)
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("opening a session at %s: %w (%w)", c.socket, context.Cause(ctx), err)
		case <-time.After(retryPause):
		}
	}
}

// setSession makes a session the one of the client.
func (c *Client) setSession(s *session) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		_ = s.conn.Close() // receive sees it
		return net.ErrClosed
	}
	c.session = s
	return nil
}

// openOnce opens a session, once.
func (c *Client) openOnce(ctx context.Context) (*session, error) {
	conn, err := c.connect(ctx)
	if err != nil {
		return nil, err
	}
	conn.SetTimeout(handshakeTimeout)
	if err = conn.Send(frame.Session, nil); err == nil {
		_, err = conn.Expect(frame.Welcome)
	}
	if err != nil {
		_ = conn.Close() // it is of no use
		return nil, fmt.Errorf("opening a session: %w", err)
	}
	conn.SetTimeout(0)
	s := &session{conn: conn, done: make(chan struct{})}
	go s.receive()
	return s, nil
}

func (c *Client) connect(ctx context.Context) (*frame.Conn, error) {
	conn, err := (&net.Dialer{Timeout: handshakeTimeout}).DialContext(ctx, "unix", c.socket)
	if err != nil {
		return nil, fmt.Errorf("connecting: %w", err)
	}
	return frame.New(conn), nil
}

// dialInSession opens a session and a connection beside it. A sandbox that goes away
// between the two is awaited again, once: nothing was asked of it.
func (c *Client) dialInSession(ctx context.Context) (*frame.Conn, *session, error) {
	var failed error
	for range 2 {
		s, err := c.open(ctx)
		if err != nil {
			return nil, nil, err
		}
		conn, err := c.connect(ctx)
		if err == nil {
			return conn, s, nil
		}
		failed = err
		select {
		case <-s.done:
		case <-time.After(retryPause):
		}
	}
	return nil, nil, fmt.Errorf("%w: %w", ErrUnavailable, failed)
}
