package sandbox

import (
	"fmt"
	"io"
	"sync"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/frame"
)

// maxStdin is how many bytes of stdin are in one frame, so that a Kill frame does
// not wait long.
const maxStdin = 32 << 10

// A stdin sends the standard input of a program, at most one window ahead of what
// the program has read.
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
