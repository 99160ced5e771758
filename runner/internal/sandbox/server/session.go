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

	handover sync.Mutex // held while one session gives way to the next

	mu       sync.Mutex
	conn     *frame.Conn // nil: there is none
	killed   []sandbox.Killed
	pressure pressure
}

// open makes a connection the session. The one before it ends first, with all
// that it had started: a second runner means that the first has no business here
// anymore.
func (s *sessions) open(conn *frame.Conn) error {
	s.handover.Lock()
	defer s.handover.Unlock()
	s.mu.Lock()
	before := s.conn
	s.mu.Unlock()
	if before != nil {
		s.end(before)
	}
	s.mu.Lock()
	s.conn = conn
	s.mu.Unlock()
	s.commands.setOpen(true)
	return conn.Send(frame.Welcome, nil)
}

// waitForEnd waits for the end of a session, at which everything is killed.
func (s *sessions) waitForEnd(conn *frame.Conn) {
	_, _ = conn.Receive() // nothing is said: it has ended, or makes no sense
	s.handover.Lock()
	defer s.handover.Unlock()
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
	s.commands.setOpen(false)
	killed := s.commands.endAll(endTimeout)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn = nil
	s.killed = killed[:min(len(killed), maxKilled)]
}

// close ends the session for good.
func (s *sessions) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		_ = s.conn.Close() // as often as it is wanted
	}
}

// previouslyKilled is what was killed when the session before this one ended.
func (s *sessions) previouslyKilled() []sandbox.Killed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.killed
}

// setPressure tells the runner when memory is nearly used up, and when no longer, so
// that it knows why the sandbox goes away should it do so now.
func (s *sessions) setPressure(now pressure) {
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
	pressureNormal pressure = iota
	pressureHigh            // nearly all of it
)
