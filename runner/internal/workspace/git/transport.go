package git

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"

	"github.com/deckhand-dev/deckhand/runner/internal/address"
)

// A service is a command of a git server.
type service string

const (
	uploadPack  service = "git-upload-pack"
	receivePack service = "git-receive-pack"
)

// A transport reaches the server of one repository.
type transport interface {
	// open begins a session with a service.
	open(context.Context, service) (packSession, error)
}

// A packSession is one session with a service: it tells its refs, is asked once,
// and answers.
type packSession interface {
	refs() *packp.AdvRefs
	// ask sends a request of a length, negative where it is not known, and returns
	// the answer.
	ask(ctx context.Context, body io.Reader, length int64) (io.ReadCloser, error)
	Close() error
}

const (
	// maxRefs bounds what a server tells of its refs, in bytes.
	maxRefs = 64 << 20
	// idleTimeout is how long a server may be silent. While it works on a pack it says
	// so every few seconds.
	idleTimeout = 5 * time.Minute
	// connectTimeout is how long connecting may take.
	connectTimeout = 30 * time.Second
)

// errSilent means that a server was idle for longer than idleTimeout.
var errSilent = errors.New("the server has been silent for too long")

// dial connects to a server; the connection has an idle timeout.
func dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := address.DialContext(&net.Dialer{Timeout: connectTimeout})(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return newIdleTimeoutConn(conn, idleTimeout), nil
}

// refused returns the error for a host whose address is not reached; nil for any other error.
func (l location) refused(err error) error {
	no, is := errors.AsType[*address.RefusedError](err)
	if !is {
		return nil
	}
	return Refused("%s is not reached: %s.", l.text, printable(no.Error()))
}

// An idleTimeoutConn is a connection that is closed after a time without data in either
// direction. It sets no deadlines: its user may.
type idleTimeoutConn struct {
	net.Conn
	limit  time.Duration
	timer  *time.Timer
	silent atomic.Bool
}

func newIdleTimeoutConn(conn net.Conn, limit time.Duration) *idleTimeoutConn {
	c := &idleTimeoutConn{Conn: conn, limit: limit}
	c.timer = time.AfterFunc(limit, func() {
		c.silent.Store(true)
		_ = conn.Close() // reads and writes fail
	})
	return c
}

// noteActivity resets the timer after a read or write.
func (c *idleTimeoutConn) noteActivity(n int, err error) (int, error) {
	switch {
	case err == nil:
		c.timer.Reset(c.limit)
	case c.silent.Load():
		err = errSilent
	}
	return n, err
}

func (c *idleTimeoutConn) Read(p []byte) (int, error)  { return c.noteActivity(c.Conn.Read(p)) }
func (c *idleTimeoutConn) Write(p []byte) (int, error) { return c.noteActivity(c.Conn.Write(p)) }

func (c *idleTimeoutConn) Close() error {
	c.timer.Stop()
	return c.Conn.Close()
}
