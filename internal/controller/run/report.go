package run

import (
	"context"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/outcome"
	"github.com/deckhand-dev/deckhand/internal/statuspatch"
)

// report writes the status once, only if it changed, then tells the user. It
// is the only writer of status and events.
func (r *Reconciler) report(ctx context.Context, w world, p plan, want v1alpha1.RunStatus) error {
	if p.forget || !w.run.DeletionTimestamp.IsZero() {
		return nil
	}
	return outcome.Reporter{Client: r.client, Events: r.events}.Report(ctx, w.run, want, demands(w, p)...)
}

// demands are what must still be as it was seen. A claim, and giving a Run up,
// rest on all that was seen, a report of the runner that just came in
// included; the runner cannot starve these writes, for it is not there. All
// others rest on the attempt alone.
func demands(w world, p plan) []statuspatch.Op {
	givesUp := p.settles() && w.committed() == nil
	if p.claim != nil || givesUp || w.run.Status.Attempt == nil {
		return []statuspatch.Op{statuspatch.SameObject(w.run), statuspatch.SameVersion(w.run)}
	}
	return []statuspatch.Op{
		statuspatch.SameObject(w.run),
		statuspatch.Same("/status/attempt/number", w.attempt()),
	}
}
