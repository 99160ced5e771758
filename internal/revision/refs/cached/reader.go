// Package cached has the reader of package refs for the operator's cache, and finds the objects that refer to a changed
// object.
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
