package sandbox

import (
	"fmt"
	"io"
	"sync"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/frame"
)

// maxStdin is how much of stdin goes into one frame, so that whoever writes much
// does not hold up who wants to kill.
const maxStdin = 32 << 10

// A stdin sends what a program reads, no more than a window ahead of it.
type stdin struct {
	conn  *frame.Conn
	done  <-chan struct{} // closed when the process ended
	grown chan struct{}   // told when the window grew

	writing sync.Mutex // one at a time, in order
	mu      sync.Mutex
	window  int
	closed  bool
}

// Write waits until all of it is on its way.
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

// Close tells the program that nothing more comes.
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
	case <-s.done: // a program that ended reads no more
		return nil
	default:
	}
	if err := s.conn.Send(frame.StdinClose, nil); err != nil {
		return fmt.Errorf("closing the program's input: %w", err)
	}
	return nil
}

// reserve takes up to so many bytes of the window, once there are any.
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

// credit widens the window by what reached the program.
func (s *stdin) credit(n int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.window += n; s.window > frame.Window {
		return fmt.Errorf("%w: more stdin arrived than was sent", frame.ErrProtocol)
	}
	s.wakeWriter()
	return nil
}

// wakeWriter wakes who waits for the window.
func (s *stdin) wakeWriter() {
	select {
	case s.grown <- struct{}{}:
	default:
	}
}
