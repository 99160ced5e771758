package snapshot

import (
	"encoding/json"
	"fmt"

	"github.com/deckhand-dev/deckhand/internal/shared/inputtext"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// InputSchemaOf is the schema of what an Agent of a Snapshot is given.
func InputSchemaOf(agent task.Agent) json.RawMessage {
	if len(agent.InputSchema) == 0 {
		return defaultInput
	}
	return agent.InputSchema
}

// CheckTemplate checks a text with expressions in ${{ }} against the input schema of an Agent;
// empty: the Agent declares no input and has only a prompt.
func CheckTemplate(text, agent string, schema json.RawMessage) error {
	if len(schema) > 0 {
		return inputtext.Check(text, schema)
	}
	err := inputtext.Check(text, defaultInput)
	if err != nil && inputtext.Check(text, nil) == nil { // it reads what the Agent does not declare
		return fmt.Errorf("%w; %s", err, NoInput(agent))
	}
	return err
}

// NoInput says that an Agent declares no input, and what to do.
func NoInput(agent string) string {
	return fmt.Sprintf("Agent %s declares no input: add spec.input to it", agent)
}
