package python

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/tool/remember"
)

// maxSessions bounds the interpreters that run at once.
const maxSessions = 8

// endTimeout is how long to wait for the end of an interpreter.
const endTimeout = time.Second

const stateFile = "python.json"

// A key names a session of an agent.
type key struct {
	Scope string `json:"scope,omitempty"`
	Name  string `json:"name"`
}

// A session has an interpreter while one is needed.
type session struct {
	lock        chan struct{} // holds a token while a call is in it
	interpreter *interpreter  // nil if there is none
	reserved    bool          // an interpreter runs or is being started
	endReason   string        // why the last interpreter ended; empty if there was none
}

// load reads the interpreters of an earlier attempt, which are lost.
func (s *Interpreters) load() error {
	return remember.Load(s.opts.State, stateFile, &s.lost)
}

// save records which interpreters run, for the next attempt. Errors are ignored,
// because a full disk must not fail a call.
func (s *Interpreters) save() { _ = remember.Save(s.opts.State, stateFile, s.keys()) }

// keys returns the sorted keys of sessions with an interpreter.
func (s *Interpreters) keys() []key {
	keys := []key{}
	for k, one := range s.sessions {
		if one.alive() {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, func(a, b key) int { return strings.Compare(a.Scope+"\x00"+a.Name, b.Scope+"\x00"+b.Name) })
	return keys
}

// alive reports whether a session has an interpreter, or one is being started.
func (o *session) alive() bool {
	if !o.reserved || o.interpreter == nil {
		return o.reserved
	}
	select {
	case <-o.interpreter.done:
		return false
	default:
		return true
	}
}

// Lost describes the interpreters that were lost with an earlier attempt, for the
// model.
func (s *Interpreters) Lost() []string { return words(s.lost) }

func words(keys []key) []string {
	var all []string
	for _, k := range keys {
		all = append(all, "python session "+k.Name)
	}
	return all
}

// Close ends all interpreters and waits up to endTimeout.
func (s *Interpreters) Close() {
	s.end()
	timer := time.NewTimer(endTimeout)
	defer timer.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.sessions {
		if one.interpreter == nil {
			continue
		}
		select {
		case <-one.interpreter.done:
		case <-timer.C:
			return
		}
	}
}

// lockSession waits until no other call uses a session.
func (s *Interpreters) lockSession(ctx context.Context, k key) (*session, error) {
	s.mu.Lock()
	one, ok := s.sessions[k]
	if !ok {
		one = &session{lock: make(chan struct{}, 1)}
		if slices.Contains(s.lost, k) {
			one.endReason = "lost when the runner was restarted"
		}
		s.sessions[k] = one
	}
	s.mu.Unlock()
	select {
	case one.lock <- struct{}{}:
		return one, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// A fullError means that too many interpreters run.
type fullError struct{ execution []string }

func (e *fullError) Error() string {
	return fmt.Sprintf("%d interpreters run already, which is the most", len(e.execution))
}

// reserve counts a new interpreter. It fails if too many run.
func (s *Interpreters) reserve(one *session) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if execution := s.keys(); len(execution) >= maxSessions {
		return &fullError{execution: words(execution)}
	}
	one.reserved, one.interpreter = true, nil
	s.save()
	return nil
}

// setInterpreter sets the interpreter of a session; nil if it ended, with the reason.
func (s *Interpreters) setInterpreter(one *session, i *interpreter, endReason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one.interpreter, one.reserved, one.endReason = i, i != nil, endReason
	s.save()
}

// endInterpreter ends the interpreter of a session and waits up to endTimeout.
func (s *Interpreters) endInterpreter(one *session, why string) {
	if i := one.interpreter; i != nil {
		i.end()
		timer := time.NewTimer(endTimeout)
		defer timer.Stop()
		select {
		case <-i.done:
		case <-timer.C:
		}
	}
	s.setInterpreter(one, nil, why)
}

var errNotReady = errors.New("python did not start")
