package toolcall

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/engine/approval"
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/internal/state"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A toolSession is what a tool may do in the session beside its work: ask, delegate,
// and look what the policies allow.
type toolSession struct {
	runner *Runner
	call   step.Call

	mu     sync.Mutex
	active int  // how often the call is in another session, or asks a person
	closed bool // the result of the call does not wait for it
	// shown has the files of the answers to the questions of the call, each as a part that shows it or
	// a line that says why it is not shown.
	shown []step.Part
}

var _ tool.Session = (*toolSession)(nil)

// close ends what the call may do, and returns false where it is in another session.
func (s *toolSession) close() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = s.active == 0
	return s.closed
}

// enter stands before what the call does in its session beside itself. A call
// that has its result may do nothing any more.
func (s *toolSession) enter(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if s.closed {
		return errTimeout
	}
	s.active++
	return nil
}

func (s *toolSession) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active--
}

// isOnlyActive says whether the call is in no other session already.
func (s *toolSession) isOnlyActive() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.active == 1
}

// Authorize implements [tool.Session].
func (s *toolSession) Authorize(ctx context.Context, args json.RawMessage) *tool.Error {
	r := s.runner
	if !r.policies.exist() {
		return nil
	}
	args = r.config.Redact.JSON(args)
	v, _ := r.policies.evaluate(ctx, step.Call{ID: s.call.ID, Name: s.call.Name, Args: args}, r.config.Digest(s.call.Name, args))
	switch v.Answer {
	case Allow:
		return nil
	case Deny:
		return deniedByPolicy(v)
	case Ask:
	}
	return &tool.Error{Message: ResultUnapproved, Recommendations: []string{AdviceUnapproved}}
}

// Allows implements [tool.Session].
func (s *toolSession) Allows(ctx context.Context, name string, args json.RawMessage) bool {
	return s.runner.policies.allows(ctx, name, args)
}

// HasPolicy implements [tool.Session].
func (s *toolSession) HasPolicy() bool { return s.runner.policies.exist() }

// Ask implements [tool.Session].
func (s *toolSession) Ask(ctx context.Context, q tool.Question) (tool.Answer, error) {
	if err := s.enter(ctx); err != nil {
		return tool.Answer{}, err
	}
	defer s.leave()
	id, since := s.questionID(s.call.ID)
	if said, answered := s.runner.decision(id); answered {
		s.show(ctx, said.Images)
		return tool.Answer{Text: said.Value, By: said.By}, nil
	}
	asked := &approval.Request{
		Session: s.runner.records, Reason: approval.ForAnswer, Since: since, Check: q.Fits,
		Pending: task.Pending{
			ID: id, Kind: task.PendingQuestion, Agent: task.Cut(s.runner.options.Scope.Agent, task.MaxAsker),
			Question: task.Cut(redact.Printable(s.runner.config.Redact.String(q.Text)), task.MaxMessage),
			Schema:   s.schemaText(q.Schema),
		},
	}
	d, answered, err := s.runner.config.Requests.Await(ctx, asked)
	if err != nil {
		return tool.Answer{}, err
	}
	s.show(ctx, d.Images)
	return tool.Answer{Text: d.Value, By: d.By, Expired: !answered}, nil
}

// show shows files of the workspace with the result of the call.
func (s *toolSession) show(ctx context.Context, paths []string) {
	for _, path := range paths {
		part := s.runner.ShowPath(ctx, path)
		s.mu.Lock()
		s.shown = append(s.shown, part)
		s.mu.Unlock()
	}
}

// shownFiles returns the files that are shown with the result, and the lines for those that are not. A call that was not
// made has no session, and no files.
func (s *toolSession) shownFiles() (files []step.Part, lines []string) {
	if s == nil {
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.shown {
		if p.File != nil {
			files = append(files, p)
		} else {
			lines = append(lines, p.Text)
		}
	}
	return files, lines
}

// schemaText is the schema of the answer as users see it: whole, or not at all.
func (s *toolSession) schemaText(schema json.RawMessage) string {
	if len(schema) == 0 {
		return ""
	}
	form := approval.DisplayArgs(s.runner.config.Redact.JSON(schema))
	if len(form) > task.MaxSchema {
		return ""
	}
	return form
}

// questionID is what the question of a call is known by, and since when it is
// asked: before it the call itself may have been approved.
func (s *toolSession) questionID(call string) (id string, since time.Time) {
	s.runner.config.State.ViewSession(s.runner.options.Name, func(now *state.Session) {
		id, since = approval.FreeID(call, "", now.Requests[call], nil), now.Since[call] // what it is answered is its own
	})
	return id, since
}
