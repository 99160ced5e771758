package ready

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
)

// none is what a Toolset refers to that is checked.
type none struct{}

var toolsets = kind[*v1alpha1.Toolset, none]{
	name:      "Toolset",
	newObject: func() *v1alpha1.Toolset { return new(v1alpha1.Toolset) },
	read:      func(context.Context, client.Reader, *v1alpha1.Toolset) (none, error) { return none{}, nil },
	check:     timeless(checkToolset),
	status: func(t *v1alpha1.Toolset) statusFields {
		return statusFields{status: &t.Status, generation: &t.Status.ObservedGeneration, conditions: &t.Status.Conditions}
	},
}

// checkToolset checks what the schema cannot.
func checkToolset(t *v1alpha1.Toolset, _ none) result {
	return result{ready: readyUnless(snapshot.CheckToolset(t), "Valid; Runs check server and Secrets")}
}
