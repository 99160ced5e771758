package engine

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
func (j *job) Ask(ctx context.Context, q tool.Question) (tool.Answer, error) {
	if err := j.enter(ctx); err != nil {
		return tool.Answer{}, err
	}
	defer j.leave()
	s := j.session
	id, since := s.questionOf(j.call.ID)
	if said, answered := s.decision(id); answered {
		return tool.Answer{Text: said.Value, By: said.By}, nil
	}
	asked := &approval.Request{
		Session: s, Reason: approval.ForAnswer, Since: since, Check: q.Fits,
		Pending: task.Pending{
			ID: id, Kind: task.PendingQuestion, Agent: task.Cut(s.scope.Agent, task.MaxAsker),
			Question: task.Cut(redact.Printable(s.Redact.String(q.Text)), task.MaxMessage),
			Schema:   s.form(q.Schema),
		},
	}
	d, answered, err := s.requests.Await(ctx, asked)
	if err != nil {
		return tool.Answer{}, err
	}
	return tool.Answer{Text: d.Value, By: d.By, Expired: !answered}, nil
}

// form is how to answer, as people are shown it: whole, or not at all.
func (s *session) form(schema json.RawMessage) string {
	if len(schema) == 0 {
		return ""
	}
	form := approval.Legible(s.Redact.JSON(schema))
	if len(form) > task.MaxSchema {
		return ""
	}
	return form
}

// questionOf is what the question of a call is known by, and since when it is
// asked: before it the call itself may have been approved.
func (s *session) questionOf(call string) (id string, since time.Time) {
	s.state.ViewSession(s.name, func(now *state.Session) {
		id, since = approval.FreeID(call, "", now.Requests[call], nil), now.Since[call] // what it is answered is its own
	})
	return id, since
}
