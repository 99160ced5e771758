package ready

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/internal/revision/refs"
	"github.com/deckhand-dev/deckhand/internal/revision/refs/cached"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/run/gc"
)

// A state is everything that one decision may depend on.
type state[T client.Object, R any] struct {
	facts
	exists    bool // false: the object was deleted, its revisions may remain
	object    T
	refs      R // the objects to which it refers
	revisions gc.Revisions
	now       time.Time
}

// fromCache adapts a function of package refs or workflow to read with a client.
func fromCache[T, R any](read func(context.Context, refs.Reader, T) (R, error)) func(context.Context, client.Reader, T) (R, error) {
	return func(ctx context.Context, c client.Reader, object T) (R, error) {
		return read(ctx, cached.Reader(c), object)
	}
}

func (r *reconciler[T, R]) observe(ctx context.Context, key client.ObjectKey) (state[T, R], error) {
	s := state[T, R]{now: r.now(), object: r.newObject()}
	err := r.client.Get(ctx, key, s.object)
	if client.IgnoreNotFound(err) != nil {
		return s, err
	}
	if s.exists = !apierrors.IsNotFound(err); s.exists {
		if s.refs, err = r.read(ctx, r.client, s.object); err != nil {
			return s, err
		}
	}
	if r.revisionLabel == "" {
		return s, nil
	}
	s.revisions, err = gc.ListRevisions(ctx, r.client, key.Namespace, client.MatchingLabels{r.revisionLabel: snapshot.Label(key.Name)})
	return s, err
}
