package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/frame"
)

// Timeouts of the client.
const (
	connectTimeout   = 30 * time.Second       // until the sandbox accepts connections, for example after a restart
	retryPause       = 100 * time.Millisecond // between two attempts to connect
	handshakeTimeout = 10 * time.Second       // for the answer on a new connection
	startTimeout     = 30 * time.Second       // for the start of a program
	describeTimeout  = 30 * time.Second       // for the description, which waits for the probe
	killTimeout      = 5 * time.Second        // until a killed program must have ended
	lossTimeout      = 2 * time.Second        // between the loss of a process and of its session, if the sandbox ended
)

// A Client is a Sandbox behind a unix socket. All commands that it started are
// killed when it is closed or its process ends.
type Client struct {
	socket         string
	connectTimeout time.Duration

	openToken chan struct{} // holds a token while a session is being opened

	mu      sync.Mutex
	session *session // nil if none was opened
	closed  bool
}

var _ Sandbox = (*Client)(nil)

// Dial returns a client of the sandbox behind a unix socket. The client connects
// when it is first used, and again after a restart of the sandbox.
func Dial(socket string) *Client {
	return &Client{socket: socket, connectTimeout: connectTimeout, openToken: make(chan struct{}, 1)}
}

// A session is a connection to the server. When it ends, the server kills all
// commands.
type session struct {
	conn   *frame.Conn
	done   chan struct{} // closed when the connection ended
	memory atomic.Bool   // the last frame said that memory is nearly used up
	ending atomic.Uint32 // the Ending that a frame named; zero: none
}

// lossDetail explains the end of the session to a model.
func (s *session) lossDetail() string {
	if e := s.ending.Load(); e != 0 {
		return fmt.Sprintf(lostItself, Ending(e)) //nolint:gosec // one byte
	}
	if s.memory.Load() {
		return lostMemory
	}
	return lostRestarted
}

// receive reads frames of the session until it ends.
func (s *session) receive() {
	defer close(s.done)
	defer s.conn.Close()
	for {
		f, err := s.conn.Receive()
		if err != nil || len(f.Data) != 1 {
			return
		}
		switch f.Kind {
		case frame.Memory:
			s.memory.Store(f.Data[0] != 0)
		case frame.Ending:
			s.ending.Store(uint32(f.Data[0]))
		default: // a violation of the protocol
			return
		}
	}
}

// Close ends the session. The server then kills all commands.
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

// current returns the open session; nil if none is open.
func (c *Client) current() (*session, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, net.ErrClosed
	}
	if c.session == nil {
		return nil, nil //nolint:nilnil // no session is a valid result
	}
	select {
	case <-c.session.done:
		return nil, nil //nolint:nilnil // as above
	default:
		return c.session, nil
	}
}

// open returns the session and opens one if there is none. It waits for a sandbox
// that is not reachable yet.
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

// setSession stores a new session.
func (c *Client) setSession(s *session) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		_ = s.conn.Close() // which ends receive
		return net.ErrClosed
	}
	c.session = s
	return nil
}

// openOnce makes one attempt to open a session.
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
		_ = conn.Close() // the session was not opened
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

// dialInSession opens a session if there is none, and another connection. If the
// sandbox ends between the two, it tries once more: nothing was requested yet.
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

// Bounds of a description, because the server is not trusted.
const (
	maxKilled = 64
	maxPath   = 1024
)

// Describe returns what the sandbox contains and enforces. It waits for the probe
// of the confinement, which takes about a second after the start of the server.
func (c *Client) Describe(ctx context.Context) (Description, error) {
	conn, _, err := c.dialInSession(ctx)
	if err != nil {
		return Description{}, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	conn.SetTimeout(describeTimeout)
	d, err := describe(conn)
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		return Description{}, fmt.Errorf("asking the sandbox what it is: %w", err)
	}
	return d, nil
}

func describe(conn *frame.Conn) (Description, error) {
	var d Description
	if err := conn.Send(frame.Describe, nil); err != nil {
		return d, err //nolint:wrapcheck // Describe wraps it
	}
	first, err := conn.Expect(frame.Description)
	if err == nil {
		err = conn.Message(first, &d)
	}
	if err != nil {
		return Description{}, err
	}
	return d, d.check()
}

// check validates a description and shortens its names.
func (d *Description) check() error {
	words := func(s string, more ...string) bool {
		return s == Enforced || s == Unenforced || slices.Contains(more, s)
	}
	k := d.Confinement
	if !words(k.Process) || !words(k.Files) || !words(k.Network, PortsOnly) || k.LandlockABI < 0 || k.LandlockABI > 1000 {
		return fmt.Errorf("%w: a confinement of %.100q", frame.ErrProtocol, fmt.Sprint(k))
	}
	if len(d.Shell) > maxPath || len(d.Python) > maxPath || len(d.Killed) > maxKilled {
		return fmt.Errorf("%w: a description out of bounds", frame.ErrProtocol)
	}
	for i, one := range d.Killed {
		d.Killed[i] = Killed{ID: short(one.ID), Args0: short(one.Args0)}
	}
	return nil
}

// short truncates a name that is only shown.
func short(s string) string {
	return strings.ToValidUTF8(s[:min(len(s), maxID)], "")
}
