package toolcall

import (
	"context"
	"encoding/json"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/engine/approval"
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/internal/state"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// Ask implements [tool.Session].
func (s *toolSession) Ask(ctx context.Context, q tool.Question) (tool.Answer, error) {
	if err := s.enter(ctx); err != nil {
		return tool.Answer{}, err
	}
	defer s.leave()
	id, since := s.questionOf(s.call.ID)
	if said, answered := s.runner.decision(id); answered {
		return tool.Answer{Text: said.Value, By: said.By}, nil
	}
	asked := &approval.Request{
		Session: s.runner.records, Reason: approval.ForAnswer, Since: since, Check: q.Fits,
		Pending: task.Pending{
			ID: id, Kind: task.PendingQuestion, Agent: task.Cut(s.runner.options.Scope.Agent, task.MaxAsker),
			Question: task.Cut(redact.Printable(s.runner.config.Redact.String(q.Text)), task.MaxMessage),
			Schema:   s.form(q.Schema),
		},
	}
	d, answered, err := s.runner.config.Requests.Await(ctx, asked)
	if err != nil {
		return tool.Answer{}, err
	}
	return tool.Answer{Text: d.Value, By: d.By, Expired: !answered}, nil
}

// form is how to answer, as people are shown it: whole, or not at all.
func (s *toolSession) form(schema json.RawMessage) string {
	if len(schema) == 0 {
		return ""
	}
	form := approval.DisplayArgs(s.runner.config.Redact.JSON(schema))
	if len(form) > task.MaxSchema {
		return ""
	}
	return form
}

// questionOf is what the question of a call is known by, and since when it is
// asked: before it the call itself may have been approved.
func (s *toolSession) questionOf(call string) (id string, since time.Time) {
	s.runner.config.State.ViewSession(s.runner.options.Name, func(now *state.Session) {
		id, since = approval.FreeID(call, "", now.Requests[call], nil), now.Since[call] // what it is answered is its own
	})
	return id, since
}
