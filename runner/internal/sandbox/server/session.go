//go:build linux

package server

import (
	"sync"
	"time"

	"github.com/deckhand-dev/deckhand/internal/shared/clock"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/frame"
)

// maxKilled bounds the killed commands in a description.
const maxKilled = 64

// sessions holds the session of the runner. There is one at a time; when it ends
// all commands are killed.
type sessions struct {
	commands *commands

	handover sync.Mutex // held while a session ends or is replaced

	mu       sync.Mutex
	conn     *frame.Conn // nil if there is none
	killed   []sandbox.Killed
	pressure pressure
}

// open makes a connection the session. It ends the previous session first, with its
// commands: a new runner replaces an old one.
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

// waitForEnd waits until a session ends and kills its commands.
func (s *sessions) waitForEnd(conn *frame.Conn) {
	_, _ = conn.Receive() // a session sends no frames: it has ended, or violates the protocol
	s.handover.Lock()
	defer s.handover.Unlock()
	s.end(conn)
}

// end ends a session and its commands, if it is the current one.
func (s *sessions) end(conn *frame.Conn) {
	_ = conn.Close() // may be closed already
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

// close closes the connection of the session.
func (s *sessions) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil {
		_ = s.conn.Close() // may be closed already
	}
}

// sendEnding informs the runner why the sandbox ends itself.
func (s *sessions) sendEnding(why sandbox.Ending) {
	s.mu.Lock()
	conn := s.conn
	s.mu.Unlock()
	if conn == nil {
		return
	}
	_ = conn.SetWriteDeadline(clock.Now().Add(time.Second)) // fails only on a connection that fails anyway
	_ = conn.Send(frame.Ending, []byte{byte(why)})          // without it the runner reports a restart
}

// previouslyKilled returns the commands that were killed with the previous session.
func (s *sessions) previouslyKilled() []sandbox.Killed {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.killed
}

// setPressure informs the runner when the memory pressure changes, so that it knows
// the cause if the sandbox is OOM-killed.
func (s *sessions) setPressure(now pressure) {
	s.mu.Lock()
	conn, changed := s.conn, s.pressure != now
	s.pressure = now
	s.mu.Unlock()
	if conn != nil && changed {
		_ = conn.Send(frame.Memory, []byte{byte(now)}) // waitForEnd notices the end of the session
	}
}

// A pressure is the memory pressure that is sent to the runner.
type pressure byte

const (
	pressureNormal pressure = iota
	pressureHigh            // nearly all memory is used
)
