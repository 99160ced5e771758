package sandbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/frame"
)

// timeoutMargin is how long after its time limit a command ends here, whatever the
// sandbox says.
const timeoutMargin = 10 * time.Second

// A process is the runner's end of a command.
type process struct {
	conn    *frame.Conn
	session *session
	limits  Limits
	stdin   *stdin

	out     chan Chunk
	passed  int64 // bytes of stdout and stderr; of the pump alone
	dropped int64

	killOnce  sync.Once
	abandoned chan struct{} // closed when nobody waits for output anymore

	mu    sync.Mutex
	ended Cause // what ended it from here; empty: nothing did

	done chan struct{} // closed after exit and err are set
	exit Exit
	err  error
}

func newProcess(conn *frame.Conn, s *session, l Limits) *process {
	p := &process{
		conn: conn, session: s, limits: l,
		out: make(chan Chunk, 4), abandoned: make(chan struct{}), done: make(chan struct{}),
	}
	p.stdin = &stdin{conn: conn, window: frame.Window, grown: make(chan struct{}, 1), done: p.done}
	return p
}

// watch ends the process with its context, and at its time limit should the
// sandbox not.
func (p *process) watch(ctx context.Context) {
	var late <-chan time.Time
	if p.limits.Timeout > 0 {
		timer := time.NewTimer(p.limits.Timeout + timeoutMargin)
		defer timer.Stop()
		late = timer.C
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		p.end(Canceled)
	case <-late:
		p.end(TimedOut)
	}
}

// Stdin is what the program reads.
func (p *process) Stdin() io.WriteCloser { return p.stdin }

// Output is what it writes.
func (p *process) Output() <-chan Chunk { return p.out }

// Wait waits for its end.
func (p *process) Wait(ctx context.Context) (Exit, error) {
	select {
	case <-p.done:
		return p.exit, p.err
	case <-ctx.Done():
		return Exit{}, context.Cause(ctx)
	}
}

// Kill ends it.
func (p *process) Kill() error {
	p.end(Canceled)
	return nil
}

// end asks for the end of a process, and makes sure of it: a sandbox that does
// not answer loses the connection, with which every process ends.
func (p *process) end(why Cause) {
	p.killOnce.Do(func() {
		p.mu.Lock()
		p.ended = why
		p.mu.Unlock()
		go p.killOrDisconnect()
	})
}

func (p *process) killOrDisconnect() {
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		_ = p.conn.Send(frame.Kill, nil) // without a connection it is dead already
	}()
	late := time.NewTimer(killTimeout)
	defer late.Stop()
	select {
	case <-p.done:
	case <-late.C:
		close(p.abandoned)
		_ = p.conn.Close() // the pump sees it
	}
	<-asked
}

// receive reads what is said of the process, until its end.
func (p *process) receive() {
	defer p.conn.Close()
	defer close(p.out)
	defer close(p.done)
	for {
		f, err := p.conn.Receive()
		if err == nil && f.Kind == frame.Exit {
			p.exit, err = p.readExit(f)
			if err == nil {
				return
			}
		}
		if err == nil {
			err = p.handleFrame(f)
		}
		if err != nil {
			p.exit, p.err = p.connectionLost(err)
			return
		}
	}
}

// handleFrame deals with one frame.
func (p *process) handleFrame(f frame.Frame) error {
	switch f.Kind {
	case frame.Stdout:
		p.deliver(Stdout, f.Data)
	case frame.Stderr:
		p.deliver(Stderr, f.Data)
	case frame.Control:
		p.deliver(Control, f.Data)
	case frame.Credit:
		n, err := frame.ReadCredit(f)
		if err != nil {
			return err //nolint:wrapcheck // broken wraps it
		}
		return p.stdin.credit(n)
	default:
		return fmt.Errorf("%w: %q of a process", frame.ErrProtocol, f.Kind)
	}
	return nil
}

// deliver passes output on. The sandbox holds it to the limit; should it not, it
// is held here.
func (p *process) deliver(from Stream, data []byte) {
	if from != Control && p.limits.Output > 0 {
		room := int(min(p.limits.Output-p.passed, int64(len(data))))
		p.dropped += int64(len(data) - room)
		p.passed += int64(room)
		data = data[:room]
	}
	if len(data) == 0 {
		return
	}
	select {
	case p.out <- Chunk{Stream: from, Data: append([]byte(nil), data...)}:
	case <-p.abandoned:
	}
}

// readExit reads how the process ended.
func (p *process) readExit(f frame.Frame) (Exit, error) {
	var e Exit
	if err := p.conn.Message(f, &e); err != nil {
		return e, err //nolint:wrapcheck // broken wraps it
	}
	switch e.Cause {
	case Exited, TimedOut, Canceled, TooManyProcesses, OutOfMemory:
	default:
		return e, fmt.Errorf("%w: a cause %.40q", frame.ErrProtocol, e.Cause)
	}
	if e.Dropped < 0 {
		return e, fmt.Errorf("%w: %d bytes dropped", frame.ErrProtocol, e.Dropped)
	}
	e.Signal = e.Signal[:min(len(e.Signal), 32)]
	e.Dropped += p.dropped
	e.Detail = detail(e.Cause)
	return e, nil
}

// connectionLost says what it means that the connection ended without a farewell.
func (p *process) connectionLost(err error) (Exit, error) {
	lost := Exit{Code: -1, Cause: SandboxLost, Dropped: p.dropped, Detail: detail(SandboxLost)}
	p.mu.Lock()
	ended := p.ended
	p.mu.Unlock()
	switch {
	case errors.Is(err, frame.ErrProtocol):
		return lost, fmt.Errorf("following a command: %w", err)
	case ended != "":
		return Exit{Code: -1, Signal: "SIGKILL", Cause: ended, Dropped: p.dropped, Detail: detail(ended)}, nil
	}
	// Something in the sandbox may have killed the supervisor, with which the
	// command ends. When the sandbox itself went away, so does the session.
	alive := time.NewTimer(lossTimeout)
	defer alive.Stop()
	select {
	case <-p.session.done:
		lost.Detail = p.session.lossDetail()
		return lost, nil
	case <-alive.C:
		return Exit{Code: -1, Signal: "SIGKILL", Cause: Exited, Dropped: p.dropped}, nil
	}
}
