package ready

import (
	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/listprices"
	"github.com/deckhand-dev/deckhand/internal/refs"
	"github.com/deckhand-dev/deckhand/internal/snapshot"
)

var models = kind[*v1alpha1.Model, map[string]*v1alpha1.Model]{
	name:      "Model",
	newObject: func() *v1alpha1.Model { return new(v1alpha1.Model) },
	read:      refs.OfModel,
	check:     checkModel,
	status: func(m *v1alpha1.Model) statusFields {
		return statusFields{status: &m.Status, generation: &m.Status.ObservedGeneration, conditions: &m.Status.Conditions, prices: &m.Status.Prices}
	},
	watches: []watch{{&v1alpha1.Model{}, modelsUsingModel, specChanged}},
}

// checkModel checks what the schema cannot, and the fallbacks.
func checkModel(m *v1alpha1.Model, fallbacks map[string]*v1alpha1.Model) result {
	_, source := listprices.Of(m.Spec)
	return result{ready: readyUnless(snapshot.CheckModel(m, fallbacks), "Valid; Runs check endpoint and Secret"), prices: source}
}
