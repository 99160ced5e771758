package snapshot

import (
	"encoding/json"
	"fmt"

	"github.com/deckhand-dev/deckhand/internal/template"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// InputSchemaOf is the schema of what an Agent of a Snapshot is given.
func InputSchemaOf(agent task.Agent) json.RawMessage {
	if len(agent.InputSchema) == 0 {
		return defaultInput
	}
	return agent.InputSchema
}

// CheckTemplate checks the paths of a text with ${{ input.x }} against the input schema of an
// Agent; empty: the Agent declares no input and has only a prompt.
func CheckTemplate(text, agent string, schema json.RawMessage) error {
	if len(schema) > 0 {
		return template.Check(text, schema)
	}
	if _, err := template.Paths(text); err != nil {
		return err
	}
	if err := template.Check(text, defaultInput); err != nil {
		return fmt.Errorf("%w; %s", err, NoInput(agent))
	}
	return nil
}

// NoInput says that an Agent declares no input, and what to do.
func NoInput(agent string) string {
	return fmt.Sprintf("Agent %s declares no input: add spec.input to it", agent)
}
