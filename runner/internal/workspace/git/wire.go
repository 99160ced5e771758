package git

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
)

// A service is one of the two things that a git server does.
type service string

const (
	uploadPack  service = "git-upload-pack"
	receivePack service = "git-receive-pack"
)

// A wire reaches the server of one repository.
type wire interface {
	// open begins to talk to a service.
	open(context.Context, service) (talk, error)
}

// A talk is one conversation with a service: it tells its refs, is asked once,
// and answers.
type talk interface {
	refs() *packp.AdvRefs
	// ask sends a request of a length, negative where it is not known, and returns
	// the answer.
	ask(ctx context.Context, body io.Reader, length int64) (io.ReadCloser, error)
	Close() error
}

const (
	// maxRefs bounds what a server tells of its refs, in bytes.
	maxRefs = 64 << 20
	// patience is how long a server may be silent. While it works on a pack it says
	// so every few seconds.
	patience = 5 * time.Minute
	// greeting is how long connecting may take.
	greeting = 30 * time.Second
)

// errSilent is what a server that says nothing more amounts to.
var errSilent = errors.New("the server has been silent for too long")

// dial connects to a server, and fails one that is silent for too long.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: greeting}
	conn, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return watch(conn, patience), nil
}

// impatient is a connection that is closed when nothing moves on it, in either
// direction, for longer than a limit. It sets no deadline: those belong to who
// uses it.
type impatient struct {
	net.Conn
	limit  time.Duration
	timer  *time.Timer
	silent atomic.Bool
}

func watch(conn net.Conn, limit time.Duration) *impatient {
	c := &impatient{Conn: conn, limit: limit}
	c.timer = time.AfterFunc(limit, func() {
		c.silent.Store(true)
		_ = conn.Close() // who reads or writes hears of it
	})
	return c
}

// moved is what a read or write came to.
func (c *impatient) moved(n int, err error) (int, error) {
	switch {
	case err == nil:
		c.timer.Reset(c.limit)
	case c.silent.Load():
		err = errSilent
	}
	return n, err
}

func (c *impatient) Read(p []byte) (int, error)  { return c.moved(c.Conn.Read(p)) }
func (c *impatient) Write(p []byte) (int, error) { return c.moved(c.Conn.Write(p)) }

func (c *impatient) Close() error {
	c.timer.Stop()
	return c.Conn.Close()
}
