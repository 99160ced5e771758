package schema_test

import (
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/schema"
)

func TestValidate(t *testing.T) {
	const topic = `{"type":"object","required":["topic"],"properties":{"topic":{"type":"string"},"depth":{"type":"integer","maximum":3}}}`
	cases := map[string]struct {
		value string
		want  string // part of the error; empty: none
	}{
		"a value that fits":        {value: `{"topic":"tides","depth":2}`},
		"one with something more":  {value: `{"topic":"tides","color":"red"}`},
		"one that lacks something": {value: `{"depth":2}`, want: "`topic` is missing; there are: topic (required), depth"},
		"one of the wrong type":    {value: `{"topic":7}`, want: "`topic` must be a string; got an integer"},
		"one beyond its bound":     {value: `{"topic":"tides","depth":9}`, want: "`depth` must be at most 3; got 9"},
		"one that is no object":    {value: `"tides"`, want: "the value must be an object; got a string"},
		"one that is no JSON":      {value: `{"topic":`, want: "not JSON"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := schema.Validate([]byte(topic), []byte(tc.value))
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("Validate(%s) = %v, want %q", tc.value, err, tc.want)
			}
		})
	}
}

// Whoever wrote a value is told in words what each keyword of a schema asks, and
// what was there instead.
func TestWhatDoesNotFitIsSaidInWords(t *testing.T) {
	cases := map[string]struct {
		schema, value string
		want          string
	}{
		"a type":                {`{"type":"integer"}`, `1.5`, "`a` must be an integer; got a number"},
		"a null":                {`{"type":"array","items":{"type":"string"}}`, `null`, "`a` must be an array; got null"},
		"an enum":               {`{"type":"string","enum":["x","y"]}`, `"z"`, "`a` must be one of \"x\", \"y\"; got \"z\""},
		"a minimum":             {`{"type":"number","minimum":0.5}`, `0`, "`a` must be at least 0.5; got 0"},
		"a maximum":             {`{"type":"number","maximum":3}`, `3.5`, "`a` must be at most 3; got 3.5"},
		"a multiple":            {`{"type":"integer","multipleOf":5}`, `7`, "`a` must be a multiple of 5; got 7"},
		"a text too short":      {`{"type":"string","minLength":1}`, `""`, "`a` must have at least 1 character; got 0"},
		"a text too long":       {`{"type":"string","maxLength":2}`, `"äöü"`, "`a` must have at most 2 characters; got 3"},
		"a pattern":             {`{"type":"string","pattern":"^v[0-9]+$"}`, `"x"`, "`a` must match ^v[0-9]+$; got \"x\""},
		"an array too short":    {`{"type":"array","items":{"type":"string"},"minItems":2}`, `["x"]`, "`a` must have at least 2 items; got 1"},
		"an array too long":     {`{"type":"array","items":{"type":"string"},"maxItems":1}`, `["x","y"]`, "`a` must have at most 1 item; got 2"},
		"what is in an array":   {`{"type":"array","items":{"type":"string"}}`, `["x",1]`, "`a[1]` must be a string; got an integer"},
		"too few properties":    {`{"type":"object","minProperties":1}`, `{}`, "`a` must have at least 1 property; got 0"},
		"too many properties":   {`{"type":"object","maxProperties":0}`, `{"b":1}`, "`a` must have at most 0 properties; got 1"},
		"what is in a map":      {`{"type":"object","additionalProperties":{"type":"string"}}`, `{"b":1}`, "`a.b` must be a string; got an integer"},
		"what is not known":     {`{"type":"object","properties":{"b":{"type":"string"}},"additionalProperties":false}`, `{"c":1}`, "`a.c` is not known; there are: b"},
		"something deep inside": {`{"type":"object","properties":{"b":{"type":"object","required":["c"],"properties":{"c":{"type":"string"}}}}}`, `{"b":{}}`, "`a.b.c` is missing; there are: c (required)"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			whole := `{"type":"object","properties":{"a":` + tc.schema + `}}`
			if err := schema.Check([]byte(whole)); err != nil {
				t.Fatalf("it is no schema of ours: %v", err)
			}
			if err := schema.Validate([]byte(whole), []byte(`{"a":`+tc.value+`}`)); err == nil || err.Error() != tc.want {
				t.Errorf("Validate() = %v, want %s", err, tc.want)
			}
		})
	}
}
