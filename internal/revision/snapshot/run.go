package snapshot

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/shared/schema"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// MaxInput is the most bytes of a Run's input. The schema of Run cannot bound what it does not
// know the shape of.
const MaxInput = 16 << 10

// maxNameShown is the most bytes of a name in a message, so that what to do fits behind it.
const maxNameShown = 64

// CheckRun finds why an Agent cannot do the work of a Run: a *NotReadyError with the reason with
// which the Run ends, or nil.
func CheckRun(run v1alpha1.RunSpec, agent task.Agent) *NotReadyError {
	if p := CheckInputSize(run); p != nil {
		return p
	}
	misconfigured := func(format string, args ...any) *NotReadyError {
		return &NotReadyError{v1alpha1.ReasonMisconfigured, fmt.Sprintf(format, args...)}
	}
	err := schema.Validate(InputSchemaOf(agent), wholeInput(run, agent))
	switch {
	case err != nil && run.Input != nil && len(agent.InputSchema) == 0:
		return misconfigured("spec.input: %s, or write spec.prompt", NoInput(run.Agent))
	case err != nil:
		return misconfigured("spec.input does not fit the input of Agent %s: %v", run.Agent, err)
	}
	if name := undeclared(run, agent); name != "" {
		return misconfigured("spec.input.%s: %s, or write the value into spec.prompt", task.Cut(name, maxNameShown), NoInput(run.Agent))
	}
	if err := CheckTemplate(run.Prompt, run.Agent, agent.InputSchema); err != nil {
		return misconfigured("spec.prompt: %v", err)
	}
	return nil
}

// undeclared returns the name of a value that nobody would read, because the Agent of the Run declares
// no input and has only a prompt; empty: there is none.
func undeclared(run v1alpha1.RunSpec, agent task.Agent) string {
	var values map[string]json.RawMessage
	if len(agent.InputSchema) > 0 || json.Unmarshal(inputOf(run), &values) != nil {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if name != "prompt" {
			return name
		}
	}
	return ""
}

// CheckInputSize bounds the input of a Run. The problem does not say how long it is, because the
// operator does not keep an input that is longer.
func CheckInputSize(run v1alpha1.RunSpec) *NotReadyError {
	if len(inputOf(run)) <= MaxInput {
		return nil
	}
	return &NotReadyError{v1alpha1.ReasonTaskTooLarge, fmt.Sprintf("spec.input has more than %d bytes of JSON. Move long texts into files of the workspace", MaxInput)}
}

// inputOf returns the input of a Run, as JSON; empty: it has none.
func inputOf(run v1alpha1.RunSpec) json.RawMessage {
	if run.Input == nil {
		return nil
	}
	return run.Input.Raw
}

// wholeInput returns the whole input of a Run, with the defaults of its Agent. An Agent
// that declares no input takes a prompt, and the Run's prompt is one.
func wholeInput(run v1alpha1.RunSpec, agent task.Agent) json.RawMessage {
	values := map[string]json.RawMessage{}
	if raw := inputOf(run); len(raw) > 0 {
		if json.Unmarshal(raw, &values) != nil || values == nil {
			return raw // no object: the schema says so
		}
	}
	if _, said := values["prompt"]; len(agent.InputSchema) == 0 && run.Prompt != "" && !said {
		values["prompt"], _ = json.Marshal(run.Prompt) // a string always encodes
	}
	whole, err := json.Marshal(values)
	if err != nil {
		return inputOf(run)
	}
	return schema.Fill(InputSchemaOf(agent), whole)
}
