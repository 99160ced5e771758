package inputs_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/inputs"
	"github.com/deckhand-dev/deckhand/internal/shared/schema"
)

func declared(t *testing.T, text string) *v1alpha1.Input {
	t.Helper()
	var in v1alpha1.Input
	if err := yaml.UnmarshalStrict([]byte(text), &in); err != nil {
		t.Fatal(err)
	}
	return &in
}

// The schema of valid fields is one that everything else accepts too.
func TestSchema(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"a schema stays as it is, without spaces": {`schema: {"type": "object", "properties": {"b": {"type": "string"}, "a": {"type": "string"}}}`, `{"properties":{"a":{"type":"string"},"b":{"type":"string"}},"type":"object"}`},
		"a field is a required string":            {`fields: [{name: a}]`, `{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`},
		"a field that may be absent":              {`fields: [{name: a, type: Number, required: false}]`, `{"type":"object","properties":{"a":{"type":"number"}},"additionalProperties":false}`},
		"a field with a default may be absent":    {`fields: [{name: a, type: Integer, default: 3, required: false}]`, `{"type":"object","properties":{"a":{"default":3,"type":"integer"}},"additionalProperties":false}`},
		"a description":                           {`fields: [{name: a, type: Boolean, description: "says \"yes\""}]`, `{"type":"object","properties":{"a":{"description":"says \"yes\"","type":"boolean"}},"required":["a"],"additionalProperties":false}`},
		"lists and objects of anything":           {`fields: [{name: a, type: List}, {name: b, type: Object}]`, `{"type":"object","properties":{"a":{"items":{},"type":"array"},"b":{"type":"object"}},"required":["a","b"],"additionalProperties":false}`},
		"a field with a schema":                   {`fields: [{name: a, description: d, default: v, schema: {type: string, enum: [v, w]}}]`, `{"type":"object","properties":{"a":{"default":"v","description":"d","enum":["v","w"],"type":"string"}},"additionalProperties":false}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := declared(t, tc.text)
			if err := inputs.Check("spec.input", in); err != nil {
				t.Errorf("Check() = %v", err)
			}
			got := inputs.Schema(in)
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if err := schema.Check(got); err != nil {
				t.Errorf("the schema is not valid: %v", err)
			}
		})
	}
	if got := string(inputs.Schema(nil)); got != `{"type":"object","additionalProperties":false}` {
		t.Errorf("Schema(nil) = %s", got)
	}
}

func TestCheck(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"a schema that is none":           {`schema: {type: string}`, "spec.input.schema: type must be object: the value as a whole has named parts"},
		"a default in a schema":           {`schema: {type: object, properties: {a: {type: integer, default: x}}}`, "spec.input.schema: properties.a.default does not fit: the value must be an integer; got a string"},
		"the schema of a field":           {`fields: [{name: a}, {name: b, schema: {type: array}}]`, "spec.input.fields[1].schema: properties.b needs items: what the array has in it"},
		"a default of another type":       {`fields: [{name: a, type: Integer, default: many}]`, "spec.input.fields[0].default: `a` must be an integer; got a string"},
		"a default that a schema forbids": {`fields: [{name: a, default: z, schema: {type: string, enum: [v, w]}}]`, "spec.input.fields[0].default: `a` must be one of \"v\", \"w\"; got \"z\""},
		"a default of a required field":   {`fields: [{name: a, default: v, required: true}]`, "spec.input.fields[0]: a field with a default is never missing: remove required: true, or default"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := inputs.Check("spec.input", declared(t, tc.text))
			if err == nil || err.Error() != tc.want {
				t.Errorf("Check() = %v, want %s", err, tc.want)
			}
		})
	}
	if err := inputs.Check("spec.input", nil); err != nil {
		t.Errorf("Check(nil) = %v", err)
	}
}
