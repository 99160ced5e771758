package schema

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// nested is a schema of so many levels.
func nested(levels int) string {
	if levels == 1 {
		return `{"type":"string"}`
	}
	return fmt.Sprintf(`{"type":"object","properties":{"p":%s}}`, nested(levels-1))
}

func TestCheckAccepts(t *testing.T) {
	cases := map[string]string{
		"an object of anything": `{"type":"object"}`,
		"the schema of a summary": `{"type":"object","required":["summary"],
			"properties":{"summary":{"type":"string","description":"what was done","minLength":1,"maxLength":500}}}`,
		"every keyword": `{"type":"object","title":"t","description":"d","minProperties":1,"maxProperties":9,"additionalProperties":false,
			"properties":{
				"s":{"type":"string","pattern":"^a+$","format":"hostname","enum":["a","aa"],"default":"a"},
				"i":{"type":"integer","minimum":0,"maximum":10,"multipleOf":2,"enum":[2,4]},
				"n":{"type":"number","minimum":-1.5,"enum":[1,2.5]},
				"b":{"type":"boolean"},
				"a":{"type":"array","minItems":1,"maxItems":3,"items":{"type":"string"}},
				"m":{"type":"object","additionalProperties":{"type":"integer"}}}}`,
		"a property with the name of a keyword": `{"type":"object","properties":{"$ref":{"type":"string"},"not":{"type":"string"},"type":{"type":"string"}}}`,
		"as many levels as allowed":             nested(MaxDepth),
		"items of any type":                     `{"type":"object","properties":{"l":{"type":"array","items":{}}}}`,
		"a default that has defaults":           `{"type":"object","properties":{"o":{"type":"object","required":["x"],"default":{},"properties":{"x":{"type":"integer","default":1}}}}}`,
	}
	for name, raw := range cases {
		t.Run(name, func(t *testing.T) {
			if err := Check([]byte(raw)); err != nil {
				t.Errorf("Check() = %v", err)
			}
		})
	}
}

func TestCheckRefuses(t *testing.T) {
	within := func(property string) string {
		return fmt.Sprintf(`{"type":"object","properties":{"p":%s}}`, property)
	}
	cases := map[string]struct {
		raw  string
		want Error
	}{
		"what is no JSON":           {`{`, Error{"", "must be a JSON object"}},
		"what is no object":         {`[]`, Error{"", "must be a JSON object"}},
		"null":                      {`null`, Error{"", "must be a JSON object"}},
		"a value that is no object": {`{"type":"string"}`, Error{"type", "must be object: the value as a whole has named parts"}},
		"no type":                   {`{}`, Error{"", "needs a type: one of array, boolean, integer, number, object, string"}},
		"several types":             {within(`{"type":["string","null"]}`), Error{"properties.p.type", "must be one of array, boolean, integer, number, object, string"}},
		"an unknown type":           {within(`{"type":"text"}`), Error{"properties.p.type", "must be one of array, boolean, integer, number, object, string"}},
		"a reference": {
			within(`{"$ref":"#/definitions/x"}`),
			Error{"properties.p.$ref", "is not supported: write the schema out where it is used"},
		},
		"an alternative":              {within(`{"oneOf":[{"type":"string"}]}`), Error{"properties.p.oneOf", "is not supported: use one object with optional properties"}},
		"a negation":                  {within(`{"type":"string","not":{"type":"string"}}`), Error{"properties.p.not", "is not supported"}},
		"a default that does not fit": {within(`{"type":"integer","default":"x"}`), Error{"properties.p.default", "does not fit: the value must be an integer; got a string"}},
		"a keyword written wrong":     {within(`{"type":"string","maxLenght":3}`), Error{"properties.p.maxLenght", "is not supported"}},
		"an array of nothing":         {within(`{"type":"array"}`), Error{"properties.p", "needs items: what the array has in it"}},
		"a wrong item":                {within(`{"type":"array","items":{"type":"string","$ref":"x"}}`), Error{"properties.p.items.$ref", "is not supported: write the schema out where it is used"}},
		"a wrong value of a map": {
			within(`{"type":"object","additionalProperties":{}}`),
			Error{"properties.p.additionalProperties", "needs a type: one of array, boolean, integer, number, object, string"},
		},
		"a structure that is a map": {
			`{"type":"object","properties":{},"additionalProperties":{"type":"string"}}`,
			Error{"additionalProperties", "must be true or false where there are properties"},
		},
		"a keyword of another type":      {within(`{"type":"string","minimum":1}`), Error{"properties.p.minimum", "is for the type integer or number, not for string"}},
		"a required name not there":      {`{"type":"object","required":["a"]}`, Error{"required", `names "a", which is not in properties`}},
		"a required name twice":          {`{"type":"object","required":["a","a"],"properties":{"a":{"type":"string"}}}`, Error{"required", `names "a" twice`}},
		"required that is no list":       {`{"type":"object","required":true}`, Error{"required", "must be a list of names"}},
		"an empty enum":                  {within(`{"type":"string","enum":[]}`), Error{"properties.p.enum", "must have a value"}},
		"an enum of another type":        {within(`{"type":"integer","enum":[1,1.5]}`), Error{"properties.p.enum", "has a value that is not of type integer"}},
		"limits that nothing meets":      {within(`{"type":"integer","minimum":2,"maximum":1}`), Error{"properties.p.minimum", "is greater than maximum"}},
		"a length below 0":               {within(`{"type":"string","minLength":-1}`), Error{"properties.p.minLength", "must be a whole number, 0 or more"}},
		"a multiple of 0":                {within(`{"type":"integer","multipleOf":0}`), Error{"properties.p.multipleOf", "must be greater than 0"}},
		"a limit that is null":           {within(`{"type":"integer","minimum":null}`), Error{"properties.p.minimum", "must be a number"}},
		"a description that is no text":  {within(`{"type":"string","description":1}`), Error{"properties.p.description", "must be a string"}},
		"properties that are no object":  {`{"type":"object","properties":[]}`, Error{"properties", "must be an object"}},
		"a property without a name":      {`{"type":"object","properties":{"":{"type":"string"}}}`, Error{"properties", "has a property without a name"}},
		"the first of two, by its path":  {`{"type":"object","properties":{"b":{},"a":{"type":"x"}}}`, Error{"properties.a.type", "must be one of array, boolean, integer, number, object, string"}},
		"more levels than allowed":       {nested(MaxDepth + 1), Error{strings.Repeat("properties.p.", MaxDepth-1) + "properties.p", "is nested too deep; at most 8 levels are allowed"}},
		"more bytes than allowed":        {`{"type":"object","title":"` + strings.Repeat("x", MaxBytes) + `"}`, Error{"", "has 16412 bytes; at most 16384 are allowed"}},
		"an expression with look-around": {within(`{"type":"string","pattern":"(?=a)"}`), Error{"properties.p.pattern", "is not an RE2 expression: error parsing regexp: invalid or unsupported Perl syntax: `(?=`"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got *Error
			if err := Check([]byte(tc.raw)); !errors.As(err, &got) {
				t.Fatalf("Check() = %v, want an *Error", err)
			}
			if diff := cmp.Diff(tc.want, *got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func FuzzCheck(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"p":{"type":"string"}}}`))
	f.Add([]byte(nested(20)))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var e *Error
		if err := Check(raw); err != nil && !errors.As(err, &e) {
			t.Errorf("Check() = %T", err)
		}
	})
}
