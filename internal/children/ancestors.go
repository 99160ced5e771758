package children

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// maxLineage is how many ancestors are looked up: one more than there can be.
const maxLineage = 6

// Ancestor is a Run that another is a part of.
type Ancestor struct {
	UID types.UID
	Run *v1alpha1.Run // nil: gone
}

// Ancestors returns the Runs that a Run is a part of, the nearest first.
func Ancestors(ctx context.Context, from client.Reader, run *v1alpha1.Run) ([]Ancestor, error) {
	var out []Ancestor
	for run != nil && len(out) < maxLineage {
		owner := ParentOf(run)
		if owner == nil {
			return out, nil
		}
		next := Ancestor{UID: owner.UID}
		var found v1alpha1.Run
		err := from.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: owner.Name}, &found)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("getting Run %s: %w", owner.Name, err)
		case found.UID == owner.UID:
			next.Run = &found
		}
		out, run = append(out, next), next.Run
	}
	return out, nil
}
