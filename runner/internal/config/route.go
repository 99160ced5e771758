package config

import (
	"context"

	"github.com/deckhand-dev/deckhand/internal/shared/turnroute"
	"github.com/deckhand-dev/deckhand/runner/internal/engine"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// turnRoutes compiles the routes of an agent for turns. A session whose models answer all turns has none.
func (b *builder) turnRoutes(agent task.Agent, c sessionOptions) ([]engine.Route, error) {
	if c.fixed {
		return nil, nil
	}
	var routes []engine.Route
	for _, r := range agent.TurnRoutes {
		m, err := b.models.route(agent, r.Models)
		if err != nil {
			return nil, err
		}
		route := engine.Route{Model: m, When: r.When}
		if r.When != "" {
			condition, err := turnroute.Compile(r.When)
			if err != nil {
				return nil, misconfigured("Agent %s: the route to Model %s: when: %w", agent.Name, m.Name, err)
			}
			route.Applies = applies(condition)
		}
		routes = append(routes, route)
	}
	return routes, nil
}

// applies evaluates a condition for the engine.
func applies(c *turnroute.Condition) func(context.Context, engine.RouteTurn) (bool, error) {
	return func(ctx context.Context, t engine.RouteTurn) (bool, error) {
		return c.Holds(ctx, turnroute.Turn{Number: t.Number, EstimatedTokens: t.EstimatedTokens, Left: turnroute.Left(t.Left)})
	}
}
