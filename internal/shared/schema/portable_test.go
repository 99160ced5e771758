package schema_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/internal/shared/schema"
)

func TestPortable(t *testing.T) {
	cases := map[string]struct{ in, want string }{
		"a schema that providers accept keeps its bytes": {
			`{ "type":"object", "properties":{"b":{"type":"string"},"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"type":"integer"}}}`, "",
		},
		"alternatives at the root become optional properties": {
			`{"type":"object","anyOf":[{"type":"object","properties":{"content":{"type":"string"}},"required":["content"]},{"type":"object","properties":{"url":{"type":"string"}},"required":["url"]}]}`,
			`{"type":"object","properties":{"content":{"type":"string"},"url":{"type":"string"}}}`,
		},
		"what all alternatives require stays required": {
			`{"oneOf":[{"properties":{"kind":{"const":"a"},"a":{"type":"string"}},"required":["kind","a"]},{"properties":{"kind":{"const":"b"}},"required":["kind"]}]}`,
			`{"type":"object","properties":{"kind":{"anyOf":[{"const":"a"},{"const":"b"}]},"a":{"type":"string"}},"required":["kind"]}`,
		},
		"alternatives that only differ in what is required leave the properties alone": {
			`{"type":"object","properties":{"id":{"type":"string"},"name":{"type":"string"}},"oneOf":[{"required":["id"]},{"required":["name"]}]}`,
			`{"type":"object","properties":{"id":{"type":"string"},"name":{"type":"string"}}}`,
		},
		"parts that must all fit are joined": {
			`{"allOf":[{"$ref":"#/$defs/Base"},{"type":"object","properties":{"b":{"type":"string"}},"required":["b"]}],"$defs":{"Base":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}}}`,
			`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},"required":["a","b"],"$defs":{"Base":{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}}}`,
		},
		"an alternative that is no object counts for nothing": {
			`{"anyOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"type":"null"}]}`,
			`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`,
		},
		"an alternative that accepts everything requires nothing": {
			`{"type":"object","properties":{"a":{}},"anyOf":[true,{"required":["a"]}]}`,
			`{"type":"object","properties":{"a":{}}}`,
		},
		"a reference at the root is replaced by its target": {
			`{"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#/definitions/In","definitions":{"In":{"type":"object","description":"In.","properties":{"next":{"$ref":"#/definitions/In"}},"required":["next"]}}}`,
			`{"type":"object","description":"In.","properties":{"next":{"$ref":"#/definitions/In"}},"required":["next"],"definitions":{"In":{"type":"object","description":"In.","properties":{"next":{"$ref":"#/definitions/In"}},"required":["next"]}}}`,
		},
		"required: null is removed, at any depth": {
			`{"type":"object","properties":{"a":{"type":"object","properties":{},"required":null}},"required":null}`,
			`{"type":"object","properties":{"a":{"type":"object","properties":{}}}}`,
		},
		"items are added to arrays, at any depth": {
			`{"type":"object","properties":{"a":{"type":"array"},"b":{"type":["array","null"]},"c":{"anyOf":[{"type":"array"},{"type":"string"}]}}}`,
			`{"type":"object","properties":{"a":{"type":"array","items":{}},"b":{"type":["array","null"],"items":{}},"c":{"anyOf":[{"type":"array","items":{}},{"type":"string"}]}}}`,
		},
		"keywords of older drafts are written as today": {
			`{"type":"object","properties":{"n":{"type":"number","minimum":3,"exclusiveMinimum":true,"maximum":9,"exclusiveMaximum":false,"required":true},"t":{"type":"array","items":[{"type":"string"}],"additionalItems":false}}}`,
			`{"type":"object","properties":{"n":{"type":"number","exclusiveMinimum":3,"maximum":9},"t":{"type":"array","prefixItems":[{"type":"string"}],"items":false}}}`,
		},
		"null in place of a keyword is removed, but a default of null stays": {
			`{"type":"object","title":null,"properties":{"a":{"type":"string","description":null,"enum":null,"default":null}}}`,
			`{"type":"object","properties":{"a":{"type":"string","default":null}}}`,
		},
		"types that do not exist are removed or corrected": {
			`{"type":"OBJECT","properties":{"a":{"type":"any"},"b":{"type":"String"},"c":{"type":["string",null,"date"]},"d":{"type":null}}}`,
			`{"type":"object","properties":{"a":{},"b":{"type":"string"},"c":{"type":["string","null"]},"d":{}}}`,
		},
		"a property without a schema accepts anything": {
			`{"type":"object","properties":{"a":null,"b":"string","c":true}}`,
			`{"type":"object","properties":{"a":{},"b":{},"c":true}}`,
		},
		"a required property that is not described is described": {
			`{"type":"object","properties":{"a":{"type":"string"}},"required":["a","b","b"]}`,
			`{"type":"object","properties":{"a":{"type":"string"},"b":{}},"required":["a","b"]}`,
		},
		"an object at the root may not be enumerated or excluded": {
			`{"type":["object","null"],"properties":{"a":{"type":"string"}},"enum":[{"a":"x"}],"not":{"required":["b"]}}`,
			`{"type":"object","properties":{"a":{"type":"string"}}}`,
		},
		"a reference without a target is removed, one into a list is not": {
			`{"type":"object","properties":{"a":{"$ref":"#/$defs/None"},"b":{"anyOf":[{"type":"string"},{"$ref":"#/properties/b/anyOf/0"}]},"c":{"$ref":"https://example.com/s.json"}}}`,
			`{"type":"object","properties":{"a":{},"b":{"anyOf":[{"type":"string"},{"$ref":"#/properties/b/anyOf/0"}]},"c":{}}}`,
		},
		"a reference into what was merged is removed": {
			`{"type":"object","properties":{"a":{"$ref":"#/anyOf/0/properties/b"}},"anyOf":[{"properties":{"b":{"type":"string"}}}]}`,
			`{"type":"object","properties":{"a":{},"b":{"type":"string"}}}`,
		},
		"a reference to itself is removed, one to a part of itself is not": {
			`{"type":"object","properties":{"a":{"$ref":"#/properties/a"},"b":{"allOf":[{"$ref":"#/properties/b"}]},"c":{"type":"object","properties":{"d":{"$ref":"#/properties/c"}}}}}`,
			`{"type":"object","properties":{"a":{},"b":{"allOf":[{}]},"c":{"type":"object","properties":{"d":{"$ref":"#/properties/c"}}}}}`,
		},
		"an empty list of alternatives is removed":   {`{"type":"object","properties":{"a":{"anyOf":[]}}}`, `{"type":"object","properties":{"a":{}}}`},
		"the digits of numbers stay":                 {`{"properties":{"n":{"maximum":9007199254740993}}}`, `{"type":"object","properties":{"n":{"maximum":9007199254740993}}}`},
		"an empty schema accepts any object":         {`{}`, `{"type":"object","properties":{}}`},
		"no schema accepts any object":               {`null`, `{"type":"object","properties":{}}`},
		"a schema of something else accepts objects": {`{"type":"string"}`, `{"type":"object","properties":{}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, notes := schema.Portable(json.RawMessage(tc.in))
			if tc.want == "" {
				if string(got) != tc.in || notes != nil {
					t.Errorf("changed to %s: %v", got, notes)
				}
				return
			}
			if diff := cmp.Diff(parsed(t, []byte(tc.want)), parsed(t, got)); diff != "" || len(notes) == 0 {
				t.Errorf("%s, notes %v, -want +got:\n%s", got, notes, diff)
			}
		})
	}
}

// References that form a cycle, and combinations that multiply, end.
func TestPortableIsBounded(t *testing.T) {
	cycle := strings.TrimSuffix(strings.Repeat(`{"$ref":"#/$defs/A"},`, 20), ",")
	var chain, large []string
	for i := range 1500 {
		chain = append(chain, fmt.Sprintf(`"a%d":{"allOf":[{"$ref":"#/$defs/a%d"}]}`, i, i+1))
		large = append(large, fmt.Sprintf(`{"properties":{"a":{"title":"%d"}},"allOf":[{"$ref":"#/$defs/B"}]}`, i))
	}
	for _, in := range []string{
		`{"type":"object","properties":{"x":{"$ref":"#/$defs/a0"}},"$defs":{` + strings.Join(chain, ",") + `,"a1500":{}}}`,
		`{"anyOf":[` + strings.Join(large[:250], ",") + `],"$defs":{"B":{"properties":{"a":{"title":"` + strings.Repeat("x", 20_000) + `"}}}}}`,
		`{"$ref":"#"}`, `{"$ref":"#/$defs/A","$defs":{"A":{"$ref":"#/$defs/A"}}}`,
		`{"$ref":"#/$defs/A","$defs":{"A":{"anyOf":[` + cycle + `]}}}`,
	} {
		got, _ := schema.Portable(json.RawMessage(in))
		if err := strict(parsed(t, got)); err != nil || len(got) > 4096 {
			t.Errorf("%s becomes %d bytes: %v", in, len(got), err)
		}
	}
}

// Whatever a server offers, the result is what strict providers accept, it does not change again,
// and it accepts what the original accepts.
func TestPortableOfRandomSchemas(t *testing.T) {
	values := []string{`{}`, `{"a":1}`, `{"a":"x","b":[1]}`, `{"a":{"b":null}}`, `{"c":[{"a":1}],"b":true}`, `{"a":[],"c":"x"}`}
	for seed := range uint64(1000) {
		in, err := json.Marshal(randomSchema(rand.New(rand.NewPCG(seed, 7)), 4))
		if err != nil {
			t.Fatal(err)
		}
		got, _ := schema.Portable(in)
		if err := strict(parsed(t, got)); err != nil {
			t.Fatalf("seed %d: %s becomes %s: %v", seed, in, got, err)
		}
		if again, notes := schema.Portable(got); string(again) != string(got) {
			t.Fatalf("seed %d: %s becomes %s, then %s: %v", seed, in, got, again, notes)
		}
		before, err := schema.CompileTool(in)
		if err != nil || strings.Contains(string(in), "$ref") { // which may not end
			continue
		}
		after, err := schema.CompileTool(got)
		if err != nil {
			t.Fatalf("seed %d: %s becomes %s: %v", seed, in, got, err)
		}
		for _, v := range values {
			if before.Validate(json.RawMessage(v)) == nil && after.Validate(json.RawMessage(v)) != nil {
				t.Fatalf("seed %d: %s accepts %s, but %s does not", seed, in, v, got)
			}
		}
	}
}

func parsed(t *testing.T, raw []byte) any {
	t.Helper()
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	return v
}

// strict applies the rules that known providers have for the schema of a tool.
func strict(root any) error {
	node, ok := root.(map[string]any)
	if !ok || node["type"] != "object" {
		return fmt.Errorf("the root is not of type object")
	}
	if _, ok := node["properties"].(map[string]any); !ok {
		return fmt.Errorf("the root has no properties")
	}
	for _, name := range []string{"anyOf", "oneOf", "allOf", "not", "enum", "$ref"} {
		if _, ok := node[name]; ok {
			return fmt.Errorf("%s at the root", name)
		}
	}
	return strictNode(node)
}

func strictNode(v any) error {
	node, ok := v.(map[string]any)
	if !ok {
		if _, ok := v.(bool); !ok {
			return fmt.Errorf("%v is not a schema", v)
		}
		return nil
	}
	if err := errors.Join(strictRequired(node), strictType(node)); err != nil {
		return err
	}
	for name, value := range node {
		if err := strictKeyword(name, value); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

func strictRequired(node map[string]any) error {
	list, ok := node["required"].([]any)
	if ok != (node["required"] != nil) {
		return fmt.Errorf("required is %v", node["required"])
	}
	properties, ok := node["properties"].(map[string]any)
	for _, name := range list {
		if _, described := properties[name.(string)]; ok && !described {
			return fmt.Errorf("%v is required and not described", name)
		}
	}
	return nil
}

func strictType(node map[string]any) error {
	kinds, ok := node["type"].([]any)
	if !ok && node["type"] != nil {
		kinds = []any{node["type"]}
	}
	for _, kind := range kinds {
		if !slices.Contains([]any{"array", "boolean", "integer", "null", "number", "object", "string"}, kind) {
			return fmt.Errorf("type %v", kind)
		}
	}
	_, list := node["items"].([]any)
	if slices.Contains(kinds, any("array")) && node["items"] == nil || list {
		return fmt.Errorf("items of an array are %v", node["items"])
	}
	return nil
}

func strictKeyword(name string, value any) error {
	switch name {
	case "properties", "$defs":
		for _, member := range value.(map[string]any) {
			if err := strictNode(member); err != nil {
				return err
			}
		}
	case "anyOf", "oneOf", "allOf", "prefixItems":
		list, _ := value.([]any)
		if len(list) == 0 {
			return fmt.Errorf("empty")
		}
		for _, member := range list {
			if err := strictNode(member); err != nil {
				return err
			}
		}
	case "items", "not", "additionalProperties":
		return strictNode(value)
	case "exclusiveMinimum", "exclusiveMaximum", "description":
		switch value.(type) {
		case bool, nil:
			return fmt.Errorf("it is %v", value)
		}
	}
	return nil
}

// randomSchema returns a schema as careless servers write it.
func randomSchema(r *rand.Rand, depth int) any {
	pick := func(values ...any) any { return values[r.IntN(len(values))] }
	if depth == 0 {
		return pick(map[string]any{}, true, map[string]any{"type": "string"}, map[string]any{"type": "array"}, nil, "string", map[string]any{"$ref": "#/$defs/A"})
	}
	below := func() any { return randomSchema(r, depth-1) }
	some := func(most int) []any {
		list := []any{}
		for range r.IntN(most + 1) {
			list = append(list, below())
		}
		return list
	}
	node := map[string]any{}
	for range r.IntN(5) {
		switch r.IntN(12) {
		case 0:
			node["type"] = pick("object", "object", "array", "string", "any", nil, []any{"object", "null"}, []any{"array", "string"}, "Object")
		case 1, 2, 3:
			node["properties"] = map[string]any{"a": below(), pick("b", "c").(string): below()}
		case 4:
			node["required"] = pick(nil, true, []any{"a"}, []any{"a", "b"}, []any{"a", "a", 3}, "a")
		case 5:
			node["items"] = pick(below(), some(2), nil)
		case 6:
			node[pick("anyOf", "oneOf", "allOf").(string)] = pick(some(3), some(3), nil)
		case 7:
			node["additionalProperties"] = pick(true, false, nil, below())
		case 8:
			node[pick("not", "enum", "description", "default").(string)] = nil
		case 9:
			node["$defs"] = map[string]any{"A": below(), "B": below()}
		case 10:
			node["$ref"] = pick("#/$defs/A", "#/$defs/B", "#", "#/anyOf/0", "https://example.com/a.json")
		case 11:
			node["exclusiveMinimum"], node["minimum"] = pick(true, false, 3), 2
		}
	}
	return node
}
