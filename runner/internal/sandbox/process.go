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

// timeoutMargin is how long after its time limit the client ends a command if the
// server has not.
const timeoutMargin = 10 * time.Second

// A process is the client side of a command.
type process struct {
	conn    *frame.Conn
	session *session
	limits  Limits
	stdin   *stdin

	out     chan Chunk
	passed  int64 // bytes of stdout and stderr; only receive uses it
	dropped int64

	killOnce  sync.Once
	abandoned chan struct{} // closed when the output is not read any more

	mu    sync.Mutex
	ended Cause // why the client ended it; empty if it did not

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

// watch ends the process when its context ends, and after its time limit if the
// server does not.
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

// Stdin implements [Process].
func (p *process) Stdin() io.WriteCloser { return p.stdin }

// Output implements [Process].
func (p *process) Output() <-chan Chunk { return p.out }

// Wait implements [Process].
func (p *process) Wait(ctx context.Context) (Exit, error) {
	select {
	case <-p.done:
		return p.exit, p.err
	case <-ctx.Done():
		return Exit{}, context.Cause(ctx)
	}
}

// Kill implements [Process].
func (p *process) Kill() error {
	p.end(Canceled)
	return nil
}

// end asks the server to kill the process. If the server does not do so in time, the client closes the connection,
// which ends the process too.
func (p *process) end(why Cause) {
	p.killOnce.Do(func() {
		p.mu.Lock()
		p.ended = why
		p.mu.Unlock()
		go p.killOrDisconnect()
	})
}

// killOrDisconnect sends Kill and closes the connection if the process does not
// end within killTimeout.
func (p *process) killOrDisconnect() {
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		_ = p.conn.Send(frame.Kill, nil) // without a connection the process is already killed
	}()
	late := time.NewTimer(killTimeout)
	defer late.Stop()
	select {
	case <-p.done:
	case <-late.C:
		close(p.abandoned)
		_ = p.conn.Close() // which ends receive
	}
	<-asked
}

// receive reads frames until the process ended.
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

// handleFrame processes one frame.
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

// deliver sends output to the reader. It enforces the limit again, in case the
// server does not.
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

// readExit decodes and validates the Exit frame.
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

// connectionLost returns the exit of a process whose connection ended without an
// Exit frame.
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
	// A program in the sandbox may have killed the supervisor, which also ends the command. If the sandbox itself
	// ended, the session ends too.
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

// maxStdin is how many bytes of stdin are in one frame, so that a Kill frame does
// not wait long.
const maxStdin = 32 << 10

// A stdin sends the standard input of a program, at most one window ahead of the program's reading.
type stdin struct {
	conn  *frame.Conn
	done  <-chan struct{} // closed when the process ended
	grown chan struct{}   // signals that the window grew

	writing sync.Mutex // serializes writes
	mu      sync.Mutex
	window  int
	closed  bool
}

// Write blocks until all data was sent.
func (s *stdin) Write(data []byte) (int, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	sent := 0
	for sent < len(data) {
		n, err := s.reserve(min(len(data)-sent, maxStdin))
		if err == nil {
			err = s.conn.Send(frame.Stdin, data[sent:sent+n])
		}
		if err != nil {
			return sent, fmt.Errorf("writing to the program: %w", err)
		}
		sent += n
	}
	return sent, nil
}

// Close closes the standard input of the program.
func (s *stdin) Close() error {
	s.mu.Lock()
	again := s.closed
	s.closed = true
	s.mu.Unlock()
	if again {
		return nil
	}
	s.wakeWriter()
	select {
	case <-s.done: // the program has ended
		return nil
	default:
	}
	if err := s.conn.Send(frame.StdinClose, nil); err != nil {
		return fmt.Errorf("closing the program's input: %w", err)
	}
	return nil
}

// reserve waits for space in the window and takes up to want bytes of it.
func (s *stdin) reserve(want int) (int, error) {
	for {
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			return 0, io.ErrClosedPipe
		}
		n := min(want, s.window)
		s.window -= n
		s.mu.Unlock()
		if n > 0 {
			return n, nil
		}
		select {
		case <-s.grown:
		case <-s.done:
			return 0, io.ErrClosedPipe
		}
	}
}

// credit grows the window by the bytes that the program has read.
func (s *stdin) credit(n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.window += n; s.window > frame.Window {
		return fmt.Errorf("%w: credit for more stdin than was sent", frame.ErrProtocol)
	}
	s.wakeWriter()
	return nil
}

// wakeWriter wakes a Write that waits for the window.
func (s *stdin) wakeWriter() {
	select {
	case s.grown <- struct{}{}:
	default:
	}
}
