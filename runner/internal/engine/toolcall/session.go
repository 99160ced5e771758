package toolcall

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A toolSession is what a tool may do in the session beside its work: ask, delegate,
// and look what the policies allow.
type toolSession struct {
	runner *Runner
	call   step.Call

	mu     sync.Mutex
	inside int  // how often the call is in another session, or asks a person
	over   bool // the result of the call does not wait for it
}

var _ tool.Session = (*toolSession)(nil)

// close ends what the call may do, and returns false where it is in another session.
func (s *toolSession) close() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = s.inside == 0
	return s.over
}

// enter stands before what the call does in its session beside itself. A call
// that has its result may do nothing any more.
func (s *toolSession) enter(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if s.over {
		return errTimeout
	}
	s.inside++
	return nil
}

func (s *toolSession) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.inside--
}

// only says whether the call is in no other session already.
func (s *toolSession) only() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.inside == 1
}

// Authorize implements [tool.Session].
func (s *toolSession) Authorize(ctx context.Context, args json.RawMessage) *tool.Error {
	r := s.runner
	if !r.policies.governed() {
		return nil
	}
	args = r.config.Redact.JSON(args)
	v, _ := r.policies.judge(ctx, step.Call{ID: s.call.ID, Name: s.call.Name, Args: args}, r.config.Digest(s.call.Name, args))
	switch v.Answer {
	case Allow:
		return nil
	case Deny:
		return denial(v)
	case Ask:
	}
	return &tool.Error{Message: ResultUnapproved, Recommendations: []string{AdviceUnapproved}}
}

// Allows implements [tool.Session].
func (s *toolSession) Allows(ctx context.Context, name string, args json.RawMessage) bool {
	return s.runner.policies.allows(ctx, name, args)
}

// HasPolicy implements [tool.Session].
func (s *toolSession) HasPolicy() bool { return s.runner.policies.governed() }
