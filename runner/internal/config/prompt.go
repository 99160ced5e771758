package config

import (
	"encoding/json"
	"strings"

	"github.com/deckhand-dev/deckhand/internal/shared/inputtext"
	"github.com/deckhand-dev/deckhand/internal/shared/schema"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// An input is what an agent is given to work on.
type input struct {
	// prompt is its first user message.
	prompt string
	// values are bound to its instructions.
	values json.RawMessage
}

// inputOf returns the input of a Run with the defaults of its agent, and its prompt
// with these values or, without a prompt, the values themselves.
func inputOf(t task.Task, agent task.Agent) (input, error) {
	in := input{prompt: t.Prompt, values: t.Input}
	if len(agent.InputSchema) == 0 {
		in.values = withPrompt(t)
	} else {
		if len(in.values) == 0 {
			in.values = json.RawMessage("{}")
		}
		in.values = schema.Fill(agent.InputSchema, in.values)
		if err := schema.Validate(agent.InputSchema, in.values); err != nil {
			return in, misconfigured("The input of the Run does not fit the input of Agent %s: %w", agent.Name, err)
		}
	}
	if in.prompt == "" {
		in.prompt = promptIn(in.values)
		return in, nil
	}
	bound, err := inputtext.Bind(t.Prompt, agent.InputSchema, in.values)
	if err != nil {
		return in, misconfigured("The prompt of the Run: %w", err)
	}
	in.prompt = bound
	return in, nil
}

// withPrompt are the values of an agent that has no schema for them: a prompt, by
// default that of the Run, beside what else there is.
func withPrompt(t task.Task) json.RawMessage {
	values := map[string]json.RawMessage{}
	if len(t.Input) > 0 && (json.Unmarshal(t.Input, &values) != nil || values == nil) {
		return t.Input // no object: what is bound says so
	}
	if _, said := values["prompt"]; !said {
		values["prompt"], _ = json.Marshal(t.Prompt) // a string: cannot fail
	}
	all, _ := json.Marshal(values) // JSON already: cannot fail
	return all
}

// promptIn is what values alone tell an agent: their prompt where they have
// one, else all of them.
func promptIn(values json.RawMessage) string {
	var named struct {
		Prompt string `json:"prompt"`
	}
	if json.Unmarshal(values, &named) == nil && strings.TrimSpace(named.Prompt) != "" {
		return named.Prompt
	}
	return string(values)
}

// instructed is an agent whose instructions have the values of its input.
func instructed(agent task.Agent, values json.RawMessage) (task.Agent, error) {
	bound, err := inputtext.Bind(agent.Instructions, agent.InputSchema, values)
	if err != nil {
		return agent, misconfigured("The instructions of Agent %s: %w", agent.Name, err)
	}
	agent.Instructions = bound
	return agent, nil
}
