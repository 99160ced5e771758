package snapshot

import (
	"encoding/json"

	"github.com/deckhand-dev/deckhand/runner/task"
)

// InputSchemaOf is the schema of what an Agent of a Snapshot is given.
func InputSchemaOf(agent task.Agent) json.RawMessage {
	if len(agent.InputSchema) == 0 {
		return defaultInput
	}
	return agent.InputSchema
}
