package workflow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/expr"
	"github.com/deckhand-dev/deckhand/internal/snapshot"
	"github.com/deckhand-dev/deckhand/runner/schema"
)

// parameters are those of a Workflow, compiled.
type parameters struct {
	defaults map[string]json.RawMessage
	required []string
	types    map[string]expr.Type // as expressions read them
	schemas  map[string]json.RawMessage
}

// plain are the schemas of the types that a parameter may have without one of its
// own. A list says nothing of what is in it, which only here is allowed.
var plain = map[v1alpha1.ParameterType]json.RawMessage{
	"":                        json.RawMessage(`{"type":"string"}`),
	v1alpha1.ParameterString:  json.RawMessage(`{"type":"string"}`),
	v1alpha1.ParameterInteger: json.RawMessage(`{"type":"integer"}`),
	v1alpha1.ParameterNumber:  json.RawMessage(`{"type":"number"}`),
	v1alpha1.ParameterBoolean: json.RawMessage(`{"type":"boolean"}`),
	v1alpha1.ParameterList:    json.RawMessage(`{"type":"array"}`),
	v1alpha1.ParameterObject:  json.RawMessage(`{"type":"object"}`),
}

// compileParameters checks the parameters of a Workflow; name begins the names of
// their types.
func compileParameters(name string, of []v1alpha1.Parameter) (parameters, *snapshot.NotReadyError) {
	out := parameters{defaults: map[string]json.RawMessage{}, types: map[string]expr.Type{}, schemas: map[string]json.RawMessage{}}
	for _, p := range of {
		if problem := out.add(name, p); problem != nil {
			return out, problem
		}
	}
	return out, nil
}

func (p *parameters) add(name string, of v1alpha1.Parameter) *snapshot.NotReadyError {
	wrong := func(format string, args ...any) *snapshot.NotReadyError {
		return notReady(v1alpha1.ReasonInputInvalid, "parameter %s: %s", of.Name, fmt.Sprintf(format, args...))
	}
	takes := plain[of.Type]
	if of.Schema != nil {
		takes = of.Schema.Raw
		if err := schema.Check(object(map[string]json.RawMessage{of.Name: takes}, nil)); err != nil {
			return wrong("schema: %v", err)
		}
	}
	p.schemas[of.Name] = takes
	t, err := expr.FromSchema(name+".parameters."+of.Name, takes)
	if err != nil {
		return wrong("schema: %v", err)
	}
	needed := of.Default == nil && (of.Required == nil || *of.Required)
	switch {
	case of.Default != nil:
		if err := fits(of.Name, takes, of.Default.Raw); err != nil {
			return wrong("default: %v", err)
		}
		p.defaults[of.Name] = of.Default.Raw
	case needed:
		p.required = append(p.required, of.Name)
	default:
		t = expr.Optional(t)
	}
	p.types[of.Name] = t
	return nil
}

// object is the schema of an object of these and no other properties.
func object(properties map[string]json.RawMessage, required []string) json.RawMessage {
	out, _ := json.Marshal(struct { // schemas are JSON
		Type       string                     `json:"type"`
		Properties map[string]json.RawMessage `json:"properties,omitempty"`
		Required   []string                   `json:"required,omitempty"`
		Others     bool                       `json:"additionalProperties"`
	}{"object", properties, required, false})
	return out
}

// fits holds one named value to a schema.
func fits(name string, takes, value json.RawMessage) error {
	wrapped, err := json.Marshal(map[string]json.RawMessage{name: value})
	if err != nil {
		return errors.New("it is not JSON")
	}
	return schema.Validate(object(map[string]json.RawMessage{name: takes}, []string{name}), wrapped)
}

// schema is that of what a Run of the Workflow is given.
func (p *parameters) schema() json.RawMessage { return object(p.schemas, p.required) }

// Parameters are the values that a Run is given, with the defaults of those that it
// does not say. The error says what does not fit, with its path.
func (p *Program) Parameters(given json.RawMessage) (json.RawMessage, error) {
	values := map[string]json.RawMessage{}
	if len(bytes.TrimSpace(given)) > 0 {
		if err := json.Unmarshal(given, &values); err != nil || values == nil {
			return nil, errors.New("the parameters must be a JSON object")
		}
	}
	said, err := json.Marshal(values)
	if err != nil {
		return nil, fmt.Errorf("encoding the parameters: %w", err)
	}
	if err := schema.Validate(p.parameters.schema(), said); err != nil {
		return nil, err
	}
	for name, value := range p.parameters.defaults {
		if _, there := values[name]; !there {
			values[name] = value
		}
	}
	return json.Marshal(values)
}
