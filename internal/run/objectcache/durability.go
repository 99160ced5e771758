package objectcache

import (
	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/specsize"
)

// AgentWith returns a function that returns what the cache keeps of an Agent, and sets the
// durability of an Agent that says nothing. All controllers read Agents from the cache, so that for
// all of them it is as if the Agent said so.
func AgentWith(durability v1alpha1.Durability) func(any) (any, error) {
	return func(o any) (any, error) {
		kept, err := Agent(o)
		agent, is := kept.(*v1alpha1.Agent)
		if !is || agent.Spec.Workspace.Durability != "" || specsize.Dropped(agent) != "" {
			return kept, err
		}
		with := *agent // what is shared with it is not changed
		with.Spec.Workspace.Durability = durability
		return &with, err
	}
}
