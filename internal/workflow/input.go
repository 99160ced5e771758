package workflow

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/inputs"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/shared/expr"
	"github.com/deckhand-dev/deckhand/internal/shared/schema"
)

// compiledInput is the input that a Workflow declares.
type compiledInput struct {
	schema json.RawMessage
	typ    expr.Type // as expressions read it, with defaults
}

// compileInput compiles the input of a Workflow; name is the name of its type.
func compileInput(name string, in *v1alpha1.Input) (compiledInput, *snapshot.NotReadyError) {
	if err := inputs.Check("spec.input", in); err != nil {
		return compiledInput{}, notReady(v1alpha1.ReasonInvalid, "%v", err)
	}
	out := compiledInput{schema: inputs.Schema(in)}
	if in == nil {
		out.typ = expr.Object(name, nil)
		return out, nil
	}
	var err error
	if out.typ, err = expr.FromSchema(name, schema.Filled(out.schema)); err != nil {
		return compiledInput{}, notReady(v1alpha1.ReasonInvalid, "spec.input: %v", err)
	}
	return out, nil
}

// validateValue validates one property of the input of a node.
func validateValue(name string, property, value json.RawMessage) error {
	wrapped, err := json.Marshal(map[string]json.RawMessage{name: value})
	if err != nil {
		return errors.New("it is not JSON")
	}
	of := inputs.Object(map[string]json.RawMessage{name: property}, []string{name})
	return schema.Validate(of, schema.Fill(of, wrapped))
}

// Input returns the input of a Run with the defaults of missing values. The error has
// the path of the invalid value.
func (p *Program) Input(given json.RawMessage) (json.RawMessage, error) {
	if len(bytes.TrimSpace(given)) == 0 {
		given = json.RawMessage("{}")
	}
	filled := schema.Fill(p.input.schema, given)
	if err := schema.Validate(p.input.schema, filled); err != nil {
		return nil, err
	}
	return filled, nil
}

// CheckRun finds why the Workflow cannot do the work of a Run: a *snapshot.NotReadyError with the
// reason with which the Run ends, or nil.
func (p *Program) CheckRun(run v1alpha1.RunSpec) *snapshot.NotReadyError {
	if problem := snapshot.CheckInputSize(run); problem != nil {
		return problem
	}
	var given json.RawMessage
	if run.Input != nil {
		given = run.Input.Raw
	}
	if _, err := p.Input(given); err != nil {
		return notReady(v1alpha1.ReasonMisconfigured, "spec.input does not fit the input of Workflow %s: %v", run.Workflow, err)
	}
	return nil
}
