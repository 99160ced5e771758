package toolcall

import (
	"context"

	"github.com/deckhand-dev/deckhand/runner/internal/engine/approval"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// preflight returns once the call may be made as it is, or why it may not. That it
// still is what was allowed is looked at last, right before it is made.
func (t *toolCall) preflight(ctx context.Context, c *tool.Call) (*tool.Error, error) {
	for {
		digest, refused, err := t.permit(ctx, c)
		if refused != nil || err != nil {
			return refused, err
		}
		if refused, err := t.recheck(ctx, c); refused != nil || err != nil {
			return refused, err
		}
		if digest == "" || t.digest(c) == digest {
			return nil, nil
		}
	}
}

// recheck is what comes between the permission and the call, which may be days:
// nobody has paused the work or ended it meanwhile, and whoever must know of its
// effects does.
func (t *toolCall) recheck(ctx context.Context, c *tool.Call) (*tool.Error, error) {
	if err := t.runner.ready(ctx); err != nil {
		return nil, t.fail(err)
	}
	if refused := t.refused(ctx); refused != nil || !t.changes(c.Args) {
		return refused, nil
	}
	if err := t.runner.session.BeginEffects(ctx); err != nil {
		return nil, t.fail(err)
	}
	return nil, nil
}

// ready is the last safe point before a call.
func (r *Runner) ready(ctx context.Context) error {
	if err := r.session.SafePoint(ctx); approval.Leaves(err) {
		return err
	}
	if cause := context.Cause(ctx); approval.Leaves(cause) {
		return cause
	}
	return Failure(ctx)
}
