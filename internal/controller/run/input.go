package run

import (
	"encoding/json"
	"fmt"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/schema"
	"github.com/deckhand-dev/deckhand/internal/snapshot"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// maxInput is the most bytes of a Run's input. The schema of Run
// cannot bound what it does not know the shape of.
const maxInput = 16 << 10

// inputInvalid settles a Run whose input its Agent does not take, before a pod exists.
func inputInvalid(s state) (plan, bool) {
	if s.attempt() > 0 {
		return plan{}, false
	}
	spec, takes := s.run.Spec, snapshot.InputSchemaOf(s.revision.Snapshot.Agent)
	if size := len(inputOf(spec)); size > maxInput {
		return failure(v1alpha1.ReasonTaskTooLarge, fmt.Sprintf("spec.input has %d bytes of JSON; at most %d are allowed. Move long texts into files of the workspace", size, maxInput)), true
	}
	err := schema.Validate(takes, wholeInput(spec, s.revision.Snapshot.Agent))
	if err != nil && spec.Input != nil && len(s.revision.Snapshot.Agent.InputSchema) == 0 {
		return failure(v1alpha1.ReasonMisconfigured, fmt.Sprintf("spec.input: %s, or write spec.prompt; create another Run", snapshot.NoInput(spec.Agent))), true
	}
	if err != nil {
		return failure(v1alpha1.ReasonMisconfigured, fmt.Sprintf("spec.input does not fit the input of Agent %s: %v; create another Run", s.run.Spec.Agent, err)), true
	}
	if err := snapshot.CheckTemplate(spec.Prompt, spec.Agent, s.revision.Snapshot.Agent.InputSchema); err != nil {
		return failure(v1alpha1.ReasonMisconfigured, fmt.Sprintf("spec.prompt: %v; create another Run", err)), true
	}
	return plan{}, false
}

// inputOf returns the input of a Run, as JSON; empty: it has none.
func inputOf(spec v1alpha1.RunSpec) json.RawMessage {
	if spec.Input == nil {
		return nil
	}
	return spec.Input.Raw
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
		values["prompt"] = runnerpod.ToJSON(run.Prompt)
	}
	return schema.Fill(snapshot.InputSchemaOf(agent), runnerpod.ToJSON(values))
}
