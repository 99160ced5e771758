// Package cached reads for the package refs from the operator's cache, and finds there the objects that
// refer to one that changed.
package cached

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/internal/revision/refs"
)

// Reader reads with a client.
func Reader(c client.Reader) refs.Reader {
	return func(ctx context.Context, key types.NamespacedName, into refs.Object) error {
		return c.Get(ctx, key, into)
	}
}
