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

// maxSessions is how many interpreters run at once.
const maxSessions = 8

// endTimeout is how long an interpreter that is ended may take.
const endTimeout = time.Second

const stateFile = "python.json"

// A key names a session of an agent.
type key struct {
	Scope string `json:"scope,omitempty"`
	Name  string `json:"name"`
}

// A session is a place for an interpreter.
type session struct {
	held        chan struct{} // holds a token while a call is in it
	interpreter *interpreter  // nil: there is none
	reserved    bool          // it counts as running
	gone        string        // why there is none any more; empty: there never was one
}

// load reads which interpreters an earlier attempt left running. They are lost.
func (s *Interpreters) load() error {
	return remember.Load(s.opts.State, stateFile, &s.lost)
}

// save writes which run, for the next attempt. That it cannot be told on a disk
// that is full is no reason to fail a call.
func (s *Interpreters) save() { _ = remember.Save(s.opts.State, stateFile, s.keys()) }

// keys are those of the sessions that have an interpreter, in order.
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

// alive reports whether a session has an interpreter, or soon has one.
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

// Lost are the interpreters that ran when the runner of an earlier attempt was
// lost, and were lost with it, in words for the model.
func (s *Interpreters) Lost() []string { return words(s.lost) }

func words(keys []key) []string {
	var all []string
	for _, k := range keys {
		all = append(all, "python session "+k.Name)
	}
	return all
}

// Close ends all interpreters, and waits a little for that.
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

// enter waits until no other call is in a session.
func (s *Interpreters) enter(ctx context.Context, k key) (*session, error) {
	s.mu.Lock()
	one, ok := s.sessions[k]
	if !ok {
		one = &session{held: make(chan struct{}, 1)}
		if slices.Contains(s.lost, k) {
			one.gone = "lost when the runner was restarted"
		}
		s.sessions[k] = one
	}
	s.mu.Unlock()
	select {
	case one.held <- struct{}{}:
		return one, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// A fullError means that too many interpreters run.
type fullError struct{ running []string }

func (e *fullError) Error() string {
	return fmt.Sprintf("%d interpreters run already, which is the most", len(e.running))
}

// reserve makes room for the interpreter of a session.
func (s *Interpreters) reserve(one *session) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if running := s.keys(); len(running) >= maxSessions {
		return &fullError{running: words(running)}
	}
	one.reserved, one.interpreter = true, nil
	s.save()
	return nil
}

// has puts an interpreter into a session; nil: it has none, for a reason.
func (s *Interpreters) has(one *session, i *interpreter, gone string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one.interpreter, one.reserved, one.gone = i, i != nil, gone
	s.save()
}

// finish ends the interpreter of a session.
func (s *Interpreters) finish(one *session, why string) {
	if i := one.interpreter; i != nil {
		i.end()
		timer := time.NewTimer(endTimeout)
		defer timer.Stop()
		select {
		case <-i.done:
		case <-timer.C:
		}
	}
	s.has(one, nil, why)
}

var errNotReady = errors.New("python did not start")
