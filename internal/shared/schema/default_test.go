package schema_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/internal/shared/schema"
)

const withDefaults = `{"type":"object","required":["who"],"properties":{
	"who":{"type":"string"},
	"words":{"type":"integer","default":9007199254740993},
	"style":{"type":"string"},
	"ship":{"type":"object","properties":{"flag":{"type":"string","default":"red"},"name":{"type":"string"}}},
	"crew":{"type":"array","items":{"type":"object","properties":{"age":{"type":"integer","default":20}}}},
	"home":{"type":"object","default":{},"properties":{"port":{"type":"string","default":"Hull"}}}}}`

func TestFill(t *testing.T) {
	cases := map[string]struct{ schema, given, want string }{
		"what is absent":                {withDefaults, `{"who":"Ann"}`, `{"home":{"port":"Hull"},"who":"Ann","words":9007199254740993}`},
		"what is given stays":           {withDefaults, `{"home":{"port":"Cork"},"words":1}`, `{"home":{"port":"Cork"},"words":1}`},
		"null is given":                 {withDefaults, `{"home":null,"words":null}`, `{"home":null,"words":null}`},
		"an object in it":               {withDefaults, `{"home":{},"words":1,"ship":{"name":"Aurora"}}`, `{"home":{"port":"Hull"},"ship":{"flag":"red","name":"Aurora"},"words":1}`},
		"objects of a list":             {withDefaults, `{"home":{"port":"Cork"},"words":1,"crew":[{},{"age":3},7]}`, `{"crew":[{"age":20},{"age":3},7],"home":{"port":"Cork"},"words":1}`},
		"names that are not known stay": {withDefaults, `{"x":1,"words":1,"home":{"port":"Cork"}}`, `{"x":1,"words":1,"home":{"port":"Cork"}}`},
		"no object":                     {withDefaults, `[1]`, `[1]`},
		"no JSON":                       {withDefaults, `{`, `{`},
		"nothing":                       {withDefaults, ``, ``},
		"a schema without defaults":     {`{"type":"object"}`, `{ "a": 1 }`, `{ "a": 1 }`},
		"a schema that is none":         {`[`, `{}`, `{}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := schema.Fill(json.RawMessage(tc.schema), json.RawMessage(tc.given))
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// What Fill returns has every property that the schema of Filled requires for its
// default, also in the objects within.
func TestFilled(t *testing.T) {
	filled := schema.Filled(json.RawMessage(withDefaults))
	if err := schema.Validate(filled, schema.Fill(json.RawMessage(withDefaults), json.RawMessage(`{"who":"Ann","ship":{},"crew":[{}]}`))); err != nil {
		t.Errorf("what was filled does not fit: %v", err)
	}
	for want, given := range map[string]string{
		"`home` is missing; there are: home (required), who (required), words (required), crew, ship, style": `{"who":"Ann","words":1}`,
		"`ship.flag` is missing; there are: flag (required), name":                                           `{"who":"Ann","words":1,"home":{"port":"Cork"},"ship":{}}`,
		"`crew[0].age` is missing; there are: age (required)":                                                `{"who":"Ann","words":1,"home":{"port":"Cork"},"crew":[{}]}`,
	} {
		if err := schema.Validate(filled, json.RawMessage(given)); err == nil || err.Error() != want {
			t.Errorf("Validate(%s) = %v, want %s", given, err, want)
		}
	}
}
