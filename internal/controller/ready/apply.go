package ready

import (
	"context"

	"github.com/deckhand-dev/deckhand/internal/run/gc"
)

// apply deletes revisions. The error is a fact for decide.
func (r *reconciler[T, R]) apply(ctx context.Context, p plan) error {
	return gc.DeleteRevisions(ctx, r.client, p.remove)
}
