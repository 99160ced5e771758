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

// Typed makes a tool of a function. The arguments that it accepts are the
// fields of In, a struct: their names come from the json tag, where omitempty
// makes a field optional; what they mean from the jsonschema tag; the values
// that a string may have from the enum tag, separated by commas. A Spec that
// has an Input already keeps it.
//
// The function is called only with arguments that fit. The model reads an error that it
// returns. Typed panics when In has
// no schema, as regexp.MustCompile does: tools are made when a program starts.
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

// inputOf returns the schema of a struct, as the model is shown it.
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

// addEnums adds what the enum tags of a struct say.
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
