package decision

import (
	"context"

	"github.com/deckhand-dev/deckhand/internal/run/decisions"
)

// facts are the results of applying a plan. decide runs again with them.
type facts struct {
	notOwned error // why the Run could not be made the owner
}

// apply executes a plan and returns the results.
func (r *Reconciler) apply(ctx context.Context, s state, p plan) facts {
	if !p.own {
		return facts{}
	}
	return facts{notOwned: decisions.AddOwner(ctx, r.client, s.decision, s.run)}
}
