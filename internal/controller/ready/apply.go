package ready

import (
	"context"

	"github.com/deckhand-dev/deckhand/internal/run/gc"
)

// facts are the results of applying a plan. decide runs again with them.
type facts struct {
	notDeleted error // why revisions could not be deleted
}

// apply executes a plan and returns the results. Of the state it needs nothing.
func (r *reconciler[T, R]) apply(ctx context.Context, _ state[T, R], p plan) facts {
	return facts{notDeleted: gc.DeleteRevisions(ctx, r.client, p.remove)}
}
