package config

import (
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// requests makes the tools of a Toolset that is requests to an HTTP API.
func (b *builder) requests(set task.Toolset) ([]tool.Tool, error) {
	return nil, misconfigured("Toolset %s: requests are not known to this runner", set.Name)
}
