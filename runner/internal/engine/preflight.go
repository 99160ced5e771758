package engine

import (
	"context"

	"github.com/deckhand-dev/deckhand/runner/internal/engine/approval"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// clear returns once the call may be made as it is, or why it may not. That it
// still is what was allowed is looked at last, right before it is made.
func (j *job) clear(ctx context.Context, c *tool.Call) (*tool.Error, error) {
	for {
		digest, refused, err := j.permit(ctx, c)
		if refused != nil || err != nil {
			return refused, err
		}
		if refused, err := j.prelude(ctx, c); refused != nil || err != nil {
			return refused, err
		}
		if digest == "" || j.digest(c) == digest {
			return nil, nil
		}
	}
}

// prelude is what comes between the permission and the call, which may be days:
// nobody has paused the work or ended it meanwhile, and whoever must know of its
// effects does.
func (j *job) prelude(ctx context.Context, c *tool.Call) (*tool.Error, error) {
	if err := j.session.ready(ctx); err != nil {
		return nil, j.fail(err)
	}
	if refused := j.refused(ctx); refused != nil || !j.changes(c.Args) {
		return refused, nil
	}
	if err := j.session.beginEffects(ctx); err != nil {
		return nil, j.fail(err)
	}
	return nil, nil
}

// ready is the last safe point before a call.
func (s *session) ready(ctx context.Context) error {
	if err := s.safe(ctx); approval.Leaves(err) {
		return err
	}
	if cause := context.Cause(ctx); approval.Leaves(cause) {
		return cause
	}
	return failure(ctx)
}
