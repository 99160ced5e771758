package schema_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/internal/shared/pattern"
	"github.com/deckhand-dev/deckhand/internal/shared/schema"
)

// doubled is a schema whose levels each apply the next one twice.
func doubled(levels int, keyword, first string) string {
	var defs []string
	for i := range levels {
		next := fmt.Sprintf(`{"$ref":"#/$defs/d%d"}`, i+1)
		defs = append(defs, fmt.Sprintf(`"d%d":{"%s":[%s,%s]}`, i, keyword, next, next))
	}
	return fmt.Sprintf(`{%s"$ref":"#/$defs/d0","$defs":{%s,"d%d":{"type":"object"}}}`, first, strings.Join(defs, ","), levels)
}

// tree is a value that is nested in one property.
func tree(levels int, name string) string {
	return strings.Repeat(`{"`+name+`":`, levels) + "{}" + strings.Repeat("}", levels)
}

func TestSchemasWithReferencesAreNotForPeople(t *testing.T) {
	for name, raw := range map[string]string{
		"a reference to itself":               `{"allOf":[{"$ref":"#"}]}`,
		"a reference to itself in a branch":   `{"$defs":{"x":{"anyOf":[{"$ref":"#/$defs/x"},{"type":"string"}]}},"properties":{"a":{"$ref":"#/$defs/x"}}}`,
		"one written in another case":         `{"aLLoF":[{"$REF":"#"}],"allOf":[{"$ref":"#"}]}`,
		"one behind the same name":            `{"allOf":[{}],"allOf":[{"$ref":"#"}]}`,
		"one in what is not":                  `{"not":{"if":{"$ref":"#"}}}`,
		"one that depends on a property":      `{"dependentSchemas":{"a":{"$ref":"#"}}}`,
		"one of an older draft":               `{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":{"$ref":"#"}}}`,
		"one to an anchor":                    `{"$anchor":"a","allOf":[{"$ref":"#a"}]}`,
		"one to what is there at run time":    `{"$dynamicAnchor":"a","allOf":[{"$dynamicRef":"#a"}]}`,
		"one to an address":                   `{"$ref":"https://example.com/schema.json"}`,
		"one relative to an address":          `{"$id":"https://example.com/a","properties":{"a":{"$id":"b","$ref":"a"}}}`,
		"references that double":              doubled(22, "allOf", ""),
		"a schema that is nested too deep":    strings.Repeat(`{"not":`, 5000) + "{}" + strings.Repeat("}", 5000),
		"a schema that is too large":          `{"title":"` + strings.Repeat("x", 64<<10) + `"}`,
		"a pattern that is too large":         `{"type":"string","pattern":"` + strings.Repeat(".{1000}", 500) + `"}`,
		"a pattern of names":                  `{"patternProperties":{"` + strings.Repeat(".{1000}", 500) + `":{}}}`,
		"a pattern in what is not applied":    `{"$defs":{"a":{"contentSchema":{"pattern":"` + strings.Repeat(".{1000}", 500) + `"}}}}`,
		"patterns that are large together":    `{"allOf":[` + strings.TrimSuffix(strings.Repeat(`{"pattern":".{900}.{900}"},`, 20), ",") + `]}`,
		"a pattern that is not an expression": `{"pattern":"("}`,
	} {
		if _, err := schema.Compile(json.RawMessage(raw)); err == nil {
			t.Errorf("%s: accepted", name)
		}
		if err := schema.Validate(json.RawMessage(raw), json.RawMessage(`{"a":1}`)); err == nil {
			t.Errorf("%s: a value fits", name)
		}
	}
}

// Users are shown such schemas as forms, and fill them in.
func TestSchemasWithoutReferencesAreForPeople(t *testing.T) {
	for raw, value := range map[string]string{
		`{"enum":["a","b"]}`: `"a"`, `{"type":["string","null"]}`: `null`, `{}`: `3`,
		`{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"integer"}]}},"if":{"required":["b"]},"then":{"required":["a"]}}`: `{"a":1}`,
		`{"type":"object","patternProperties":{"^x":{"type":"number"}}}`:                                                          `{"x1":2}`,
	} {
		if err := schema.Validate(json.RawMessage(raw), json.RawMessage(value)); err != nil {
			t.Errorf("%s for %s: %v", value, raw, err)
		}
	}
}

// A server may send any schema for the arguments of its tool.
func TestValidatingArgumentsIsBounded(t *testing.T) {
	const node = `{"type":"object","properties":{"name":{"type":"string"},"children":{"type":"array","items":{"$ref":"#/$defs/node"}}},"required":["name"]}`
	const twice = `{"allOf":[{"properties":{"a":{"$ref":"#/$defs/x"}}},{"properties":{"a":{"$ref":"#/$defs/x"}}}]}`
	cases := map[string]struct {
		schema, value string
		want          string // fits, no fit, too much
	}{
		"a cycle without an end":                   {`{"type":"object","allOf":[{"$ref":"#"}]}`, `{}`, "too much"},
		"a cycle in one of several branches":       {`{"$defs":{"x":{"anyOf":[{"$ref":"#/$defs/x"},{"type":"string"}]}},"properties":{"a":{"$ref":"#/$defs/x"}}}`, `{"a":"b"}`, "too much"},
		"a cycle that the value does not reach":    {`{"$defs":{"x":{"anyOf":[{"$ref":"#/$defs/x"},{"type":"string"}]}},"properties":{"a":{"$ref":"#/$defs/x"}}}`, `{"b":"b"}`, "fits"},
		"a cycle through what is not":              {`{"not":{"$ref":"#"}}`, `{}`, "too much"},
		"a cycle through a condition":              {`{"if":{"type":"object"},"then":{"$ref":"#"}}`, `{}`, "too much"},
		"a cycle through a property that is there": {`{"dependentSchemas":{"a":{"$ref":"#"}}}`, `{"a":1}`, "too much"},
		"a cycle of an older draft":                {`{"$schema":"http://json-schema.org/draft-07/schema#","dependencies":{"a":{"$ref":"#"}}}`, `{"a":1}`, "too much"},
		"references that double":                   {doubled(27, "allOf", ""), `{}`, "too much"},
		"alternatives that double":                 {doubled(27, "anyOf", ""), `{}`, "too much"},
		"references that double a few times":       {doubled(5, "allOf", ""), `{}`, "fits"},
		"references that double with the value":    {`{"$ref":"#/$defs/x","$defs":{"x":` + twice + `}}`, tree(40, "a"), "too much"},
		"the same with a small value":              {`{"$ref":"#/$defs/x","$defs":{"x":` + twice + `}}`, tree(5, "a"), "fits"},
		"a chain of references":                    {`{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/c~1d"},"c/d":{"type":"string"}},"properties":{"x":{"$ref":"#/$defs/a"}}}`, `{"x":1}`, "no fit"},
		"a tree":                                   {`{"$ref":"#/$defs/node","$defs":{"node":` + node + `}}`, `{"name":"a","children":[{"name":"b","children":[{"name":"c"}]}]}`, "fits"},
		"a tree that lacks a name":                 {`{"$ref":"#/$defs/node","$defs":{"node":` + node + `}}`, `{"name":"a","children":[{"name":"b","children":[{}]}]}`, "no fit"},
		"a long text":                              {`{"properties":{"content":{"anyOf":[{"type":"string","pattern":"^[^\\x00]*$"},{"type":"null"}]}}}`, `{"content":"` + strings.Repeat("tides and winds ", 20_000) + `"}`, "fits"},
		"a long text and alternatives":             {`{"properties":{"a":{"anyOf":[` + strings.Repeat(`{"enum":["x"]},`, 3000) + `{"type":"null"}]}}}`, `{"a":"` + strings.Repeat("x", 100_000) + `"}`, "too much"},
		"many numbers of a long list":              {`{"items":{"enum":[` + strings.Repeat("1,", 20_000) + `2]}}`, "[" + strings.Repeat("2.0,", 20_000) + "2]", "fits"},
		"one that is not of many numbers":          {`{"items":{"enum":[` + strings.Repeat("1,", 20_000) + `2]}}`, "[" + strings.Repeat("2,", 20_000) + "3]", "no fit"},
		"many numbers of alternatives":             {`{"items":{"anyOf":[{"enum":[` + strings.Repeat("1,", 20_000) + `2]}]}}`, "[" + strings.Repeat("2,", 20_000) + "2]", "too much"},
		"many lists of a long list":                {`{"items":{"enum":[` + strings.Repeat("[1],", 10_000) + `[2]]}}`, "[" + strings.Repeat("[2],", 20_000) + "[2]]", "too much"},
		"a slow pattern of a long text":            {`{"pattern":"(x{0,30}){0,30}y"}`, `"` + strings.Repeat("x", 200_000) + `"`, "too much"},
		"slow patterns of names":                   {`{"patternProperties":{"(x{0,30}){0,30}y":{}}}`, `{"` + strings.Repeat("x", 200_000) + `":1}`, "too much"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v, err := schema.CompileTool(json.RawMessage(tc.schema))
			if err != nil {
				t.Fatal(err)
			}
			err = v.Validate(json.RawMessage(tc.value))
			_, cost := errors.AsType[*schema.CostError](err)
			if got := map[bool]string{err == nil: "fits", err != nil: "no fit", cost: "too much"}[true]; got != tc.want {
				t.Errorf("Validate() = %v, which is %s, want %s", err, got, tc.want)
			}
		})
	}
}

// A schema that CompileTool accepts, with references at random, is validated in bounded time.
func TestValidatingWithRandomReferencesEnds(t *testing.T) {
	values := []string{`{}`, `{"a":{"a":{"b":[{"a":1}]}}}`, tree(60, "a"), `{"c":[{"a":1}],"b":true}`}
	for seed := range uint64(1000) {
		in, err := json.Marshal(randomSchema(rand.New(rand.NewPCG(seed, 11)), 4))
		if err != nil {
			t.Fatal(err)
		}
		v, err := schema.CompileTool(in)
		if err != nil {
			continue
		}
		for _, value := range values {
			_ = v.Validate(json.RawMessage(value)) // it returns
		}
	}
}

func TestPatternsAreBoundedTogether(t *testing.T) {
	properties := make([]string, 20)
	for i := range properties {
		properties[i] = fmt.Sprintf(`"p%d":{"type":"string","pattern":".{900}.{900}"}`, i)
	}
	err := schema.Check([]byte(`{"type":"object","properties":{` + strings.Join(properties, ",") + `}}`))
	if _, ours := errors.AsType[*schema.Error](err); !ours || !strings.Contains(err.Error(), "instructions") {
		t.Errorf("Check() = %v", err)
	}
	err = schema.Check([]byte(`{"type":"object","properties":{"a":{"type":"string","pattern":"` + strings.Repeat(".{1000}", 500) + `"}}}`))
	if err == nil || !strings.HasPrefix(err.Error(), "properties.a.pattern is too large: it compiles to about ") || !strings.Contains(err.Error(), fmt.Sprint(pattern.MaxInstructions)) {
		t.Errorf("Check() = %v", err)
	}
}

// Package regexp copies the ranges of a class for each instruction of some patterns.
func TestThePatternsOfASchemaHoldLittleMemory(t *testing.T) {
	held := func() int {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int(m.HeapAlloc)
	}
	const one = `{"type":"string","pattern":"^\\pL{980}$"}`
	for name, raw := range map[string]string{
		"of properties":     `{"properties":{"a":` + one + `,"b":` + one + `,"c":` + one + `,"d":` + one + `}}`,
		"of alternatives":   `{"anyOf":[` + one + `,` + one + `,` + one + `,` + one + `]}`,
		"of references":     `{"$ref":"#/$defs/a","$defs":{"a":` + one + `,"b":` + one + `}}`,
		"of property names": `{"patternProperties":{"^\\pL{980}$":{},"^\\pL{970}$":{},"^\\pL{960}$":{}}}`,
	} {
		before := held()
		v, err := schema.CompileTool(json.RawMessage(raw))
		if err != nil {
			t.Fatal(err)
		}
		if got := held() - before; got > 1<<20 {
			t.Errorf("%s: %d bytes are held", name, got)
		}
		if err := v.Validate(json.RawMessage(`{"` + strings.Repeat("a", 980) + `":1}`)); name == "of property names" && err != nil {
			t.Errorf("%s: %v", name, err)
		}
		runtime.KeepAlive(v)
	}
}

func TestPatternsOfManyRangesAreQuotedAsWritten(t *testing.T) {
	err := schema.Validate(json.RawMessage(`{"properties":{"a":{"type":"string","pattern":"^\\pL{2}$"}}}`), json.RawMessage(`{"a":"1"}`))
	if want := "`a` must match ^\\pL{2}$; got \"1\""; err == nil || err.Error() != want {
		t.Errorf("Validate() = %v, want %s", err, want)
	}
}
