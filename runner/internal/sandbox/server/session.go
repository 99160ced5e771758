//go:build linux

package server

import (
	"sync"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/frame"
)

// maxKilled bounds what is told of commands that were killed.
const maxKilled = 64

// Sessions are the runner's connections that everything lives by, of which there
// is one at a time.
type sessions struct {
	commands *commands

	entering sync.Mutex // held while one session gives way to the next

	mu       sync.Mutex
	conn     *frame.Conn // nil: there is none
	killed   []sandbox.Killed
	pressure pressure
}

// enter makes a connection the session. The one before it ends first, with all
// that it had started: a second runner means that the first has no business here
// anymore.
func (s *sessions) enter(conn *frame.Conn) error {
	s.entering.Lock()
	defer s.entering.Unlock()
	s.mu.Lock()
	before := s.conn
	s.mu.Unlock()
	if before != nil {
		s.end(before)
	}
	s.mu.Lock()
	s.conn = conn
	s.mu.Unlock()
	s.commands.admit(true)
	return conn.Send(frame.Welcome, nil)
}

// attend waits for the end of a session, at which everything is killed.
func (s *sessions) attend(conn *frame.Conn) {
	_, _ = conn.Receive() // nothing is said: it has ended, or makes no sense
	s.entering.Lock()
	defer s.entering.Unlock()
	s.end(conn)
}

// end ends a session, if it is still the one.
func (s *sessions) end(conn *frame.Conn) {
	_ = conn.Close() // it may have ended by itself
	s.mu.Lock()
	current := s.conn == conn
	s.mu.Unlock()
	if !current {
		return
	}
	s.commands.admit(false)
	killed := s.commands.endAll(obedience)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn = nil
	s.killed = killed[:min(len(killed), maxKilled)]
}

// leave ends the session for good.
func (s *sessions) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		_ = s.conn.Close() // as often as it is wanted
	}
}

// before is what was killed when the session before this one ended.
func (s *sessions) before() []sandbox.Killed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.killed
}

// memory tells the runner when memory is nearly used up, and when no longer, so
// that it knows why the sandbox goes away should it do so now.
func (s *sessions) memory(now pressure) {
	s.mu.Lock()
	conn, changed := s.conn, s.pressure != now
	s.pressure = now
	s.mu.Unlock()
	if conn != nil && changed {
		_ = conn.Send(frame.Memory, []byte{byte(now)}) // a session that ends is noticed elsewhere
	}
}

// A pressure is how much of the memory is in use, as the runner is told.
type pressure byte

const (
	relaxed pressure = iota
	tight            // nearly all of it
)
