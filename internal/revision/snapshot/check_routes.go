package snapshot

import (
	"fmt"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/shared/turnroute"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// checkRoutes checks that each route for turns compiles and can be used.
func checkRoutes(routes []v1alpha1.Route) *NotReadyError {
	var conditions, paths []string
	for i, r := range routes {
		if r.For == v1alpha1.RouteTurn {
			conditions, paths = append(conditions, r.When), append(paths, fmt.Sprintf("spec.routes[%d]", i))
		}
	}
	wrong := turnroute.Check(conditions, func(route int) string { return paths[route] })
	if wrong == nil {
		return nil
	}
	path := paths[wrong.Route]
	if wrong.When {
		path += ".when"
	}
	return &NotReadyError{v1alpha1.ReasonInvalid, task.Cut(fmt.Sprintf("%s: %v", path, wrong), task.MaxMessage)}
}
