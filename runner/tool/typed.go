package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/deckhand-dev/deckhand/runner/internal/tool/args"
)

// Typed returns a Tool that calls f with its arguments decoded into In, a struct. Without a spec.Input, the schema of
// the arguments is made from the fields of In: the json tag has the name, and omitempty makes a field optional; the
// jsonschema tag has the description; the enum tag has the allowed values of a string, separated by commas.
//
// f is called only with arguments that match the schema; the model reads an error about others. An error of f has the
// meaning of an error of Tool.Call. Typed panics if In has no schema, as regexp.MustCompile does: tools are made when a
// program starts.
func Typed[In any](spec Spec, f func(ctx context.Context, call Call, in In) (Result, error)) Tool {
	if spec.Input == nil {
		spec.Input = inputOf[In]()
	}
	checker := args.NewChecker(spec.Input, spec.Internal.Facts())
	return Tool{Spec: spec, Call: func(ctx context.Context, call Call) (Result, error) {
		if wrong := checker.Check(spec.Name, call.Args); wrong != nil {
			return Fail(wrong.Message, wrong.Recommendations...), nil
		}
		var in In
		dec := json.NewDecoder(bytes.NewReader(call.Args))
		if err := dec.Decode(&in); err != nil { // an Input of the tool's own may allow more than In holds
			return Fail(args.Invalid(spec.Name, err.Error()).Message), nil
		}
		return f(ctx, call, in)
	}}
}

// inputOf returns the JSON Schema of a struct for the model.
func inputOf[In any]() json.RawMessage {
	s, err := jsonschema.For[In](nil)
	if err != nil {
		panic(fmt.Sprintf("tool: the schema of %T: %v", *new(In), err))
	}
	addEnums(s, reflect.TypeFor[In]())
	raw, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("tool: writing the schema of %T: %v", *new(In), err))
	}
	return raw
}

// addEnums adds the values of the enum tags of a struct to its schema.
func addEnums(s *jsonschema.Schema, t reflect.Type) {
	for field := range t.Fields() {
		values, ok := field.Tag.Lookup("enum")
		if !ok {
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		for value := range strings.SplitSeq(values, ",") {
			s.Properties[name].Enum = append(s.Properties[name].Enum, value)
		}
	}
}
