package schema_test

import (
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/internal/shared/schema"
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

// Each violation names in words what the keyword of the schema asks, and what was
// there instead.
func TestViolationsAreDescribedInWords(t *testing.T) {
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

// Numbers are compared with all their digits, where the schema is one that Check
// accepts.
func TestNumbersAreComparedExactly(t *testing.T) {
	const big = "9007199254740993" // 2^53+1, which is no 64-bit float
	cases := map[string]struct {
		schema, value string
		want          string // empty: it fits
	}{
		"hundredths":                     {`{"type":"number","multipleOf":0.01}`, `19.99`, ""},
		"hundredths of many":             {`{"type":"number","multipleOf":0.01}`, `123456789012345.67`, ""},
		"a tenth of a hundredth":         {`{"type":"number","multipleOf":0.01}`, `19.995`, "`a` must be a multiple of 0.01; got 19.995"},
		"tenths of an exponent":          {`{"type":"number","multipleOf":0.1}`, `3e-1`, ""},
		"a whole number with a point":    {`{"type":"integer"}`, `3.0`, ""},
		"an integer beyond a float":      {`{"type":"integer","minimum":` + big + `,"maximum":` + big + `}`, big, ""},
		"one below its minimum":          {`{"type":"integer","minimum":` + big + `}`, `9007199254740992`, "`a` must be at least " + big + "; got 9007199254740992"},
		"one above its maximum":          {`{"type":"integer","maximum":` + big + `}`, `9007199254740994`, "`a` must be at most " + big + "; got 9007199254740994"},
		"one of its values":              {`{"type":"integer","enum":[1,` + big + `]}`, big, ""},
		"none of its values":             {`{"type":"integer","enum":[1,` + big + `]}`, `9007199254740992`, "`a` must be one of 1, " + big + "; got 9007199254740992"},
		"an odd multiple":                {`{"type":"integer","multipleOf":2}`, big, "`a` must be a multiple of 2; got " + big},
		"more than 64 bits":              {`{"type":"integer","maximum":123456789012345678901234567890}`, `123456789012345678901234567890`, ""},
		"one more than that":             {`{"type":"integer","maximum":123456789012345678901234567890}`, `123456789012345678901234567891`, "`a` must be at most 123456789012345678901234567890; got 123456789012345678901234567891"},
		"a decimal bound":                {`{"type":"number","minimum":0.1,"maximum":0.1}`, `0.10`, ""},
		"one value written otherwise":    {`{"type":"number","enum":[0.5]}`, `5e-1`, ""},
		"a value of a map":               {`{"type":"object","additionalProperties":{"type":"number","multipleOf":0.01}}`, `{"b":19.99}`, ""},
		"an item":                        {`{"type":"array","items":{"type":"integer","maximum":` + big + `}}`, `[9007199254740994]`, "`a[0]` must be at most " + big + "; got 9007199254740994"},
		"a number beyond all bounds":     {`{"type":"number"}`, `1e999999999`, "the number 1e999999999 is too large or too small"},
		"one that is as good as nothing": {`{"type":"number"}`, `1e-999999999`, "the number 1e-999999999 is too large or too small"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			whole := `{"type":"object","properties":{"a":` + tc.schema + `}}`
			if err := schema.Check([]byte(whole)); err != nil {
				t.Fatalf("it is no schema of ours: %v", err)
			}
			got := ""
			if err := schema.Validate([]byte(whole), []byte(`{"a":`+tc.value+`}`)); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("Validate() = %q, want %q", got, tc.want)
			}
		})
	}
}

// Schemas of MCP servers have keywords that ours do not.
func TestNumbersInSchemasOfOthers(t *testing.T) {
	cases := map[string]struct {
		schema, value string
		fits          bool
	}{
		"a constant beyond a float":       {`{"const":9007199254740993}`, `9007199254740993`, true},
		"another constant":                {`{"const":9007199254740993}`, `9007199254740992`, false},
		"a constant that is null":         {`{"const":null}`, `1`, false},
		"an exclusive bound":              {`{"exclusiveMaximum":9007199254740993}`, `9007199254740992`, true},
		"the bound itself":                {`{"exclusiveMaximum":9007199254740993}`, `9007199254740993`, false},
		"one of several kinds":            {`{"anyOf":[{"type":"number","multipleOf":0.01},{"type":"null"}]}`, `19.99`, true},
		"none of several kinds":           {`{"anyOf":[{"type":"number","minimum":3},{"type":"null"}]}`, `2`, false},
		"no value at all":                 {`{"enum":[]}`, `null`, false},
		"no text at all":                  {`{"type":"string","enum":[]}`, `"x"`, false},
		"none of no kinds":                {`{"anyOf":[{"enum":[]},{"type":"null"}]}`, `2`, false},
		"an enum that is null":            {`{"enum":null}`, `2`, true},
		"a bound elsewhere":               {`{"$defs":{"n":{"minimum":3}},"$ref":"#/$defs/n"}`, `2`, false},
		"a kind elsewhere":                {`{"$defs":{"n":{"type":"string"}},"properties":{"a":{"$ref":"#/$defs/n"}}}`, `{"a":"b"}`, true},
		"a property by pattern":           {`{"patternProperties":{"^x":{"type":"number"}},"additionalProperties":false}`, `{"x1":0.5}`, true},
		"items before others":             {`{"prefixItems":[{"type":"string"}],"items":{"type":"number","multipleOf":2}}`, `["a",4]`, true},
		"an item behind them of no value": {`{"prefixItems":[{"type":"string"}],"items":{"type":"number","multipleOf":2}}`, `["a",3]`, false},
		"a text with a bound for numbers": {`{"minimum":3}`, `"a"`, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v, err := schema.CompileTool([]byte(tc.schema))
			if err != nil {
				t.Fatal(err)
			}
			if err := v.Validate([]byte(tc.value)); (err == nil) != tc.fits {
				t.Errorf("Validate(%s) = %v", tc.value, err)
			}
		})
	}
}

func TestAnEmptyEnumIsNamed(t *testing.T) {
	err := schema.Validate([]byte(`{"properties":{"a":{"type":"string","enum":[]}}}`), []byte(`{"a":"x"}`))
	if want := "`a` accepts no value, because its enum is empty: leave it out"; err == nil || err.Error() != want {
		t.Errorf("Validate() = %v, want %s", err, want)
	}
}

func TestFormatsAreChecked(t *testing.T) {
	cases := map[string]struct{ good, bad []string }{
		"date-time": {[]string{"2030-01-31T09:00:00Z", "2030-01-31t09:00:00.5+02:00"}, []string{"2030-01-31", "2030-01-31T09:00:00", "2030-02-30T09:00:00Z", "tomorrow", ""}},
		"date":      {[]string{"2030-01-31"}, []string{"2030-02-30", "31.01.2030", "2030-1-1"}},
		"time":      {[]string{"09:00:00Z", "09:00:00.25-07:00"}, []string{"09:00", "25:00:00Z", "09:00:00"}},
		"email":     {[]string{"ann@example.com"}, []string{"ann", "Ann <ann@example.com>", "ann@"}},
		"hostname":  {[]string{"example.com", "localhost", "a-1.b"}, []string{"", "-a", "a..b", "a b", "a_b", strings.Repeat("a", 64)}},
		"ipv4":      {[]string{"10.0.0.1"}, []string{"10.0.1", "010.0.0.1", "::1"}},
		"ipv6":      {[]string{"::1", "2001:db8::1"}, []string{"10.0.0.1", "fe80::1%eth0", "1::2::3"}},
		"uri":       {[]string{"https://example.com/a?b#c", "urn:isbn:1", "mailto:a@b"}, []string{"/a", "example.com", "https://a b", ""}},
		"uuid":      {[]string{"123e4567-e89b-12d3-a456-426614174000"}, []string{"123e4567e89b12d3a456426614174000", "x"}},
		"other":     {[]string{"anything", ""}, nil},
	}
	for name, tc := range cases {
		of := []byte(`{"type":"object","properties":{"a":{"type":"string","format":"` + name + `"}}}`)
		if err := schema.Check(of); err != nil {
			t.Fatal(err)
		}
		v, err := schema.Compile(of)
		if err != nil {
			t.Fatal(err)
		}
		for _, value := range tc.good {
			if err := v.Validate([]byte(`{"a":"` + value + `"}`)); err != nil {
				t.Errorf("%q is no %s: %v", value, name, err)
			}
		}
		for _, value := range tc.bad {
			if err := v.Validate([]byte(`{"a":"` + value + `"}`)); err == nil || !strings.HasPrefix(err.Error(), "`a` must be a") {
				t.Errorf("%q is a %s: %v", value, name, err)
			}
			if err := v.WithoutFormats().Validate([]byte(`{"a":"` + value + `"}`)); err != nil {
				t.Errorf("%q is refused where formats are not checked: %v", value, err)
			}
		}
	}
}

// A reference applies all keywords of the schema that it leads to, wherever that stands.
func TestReferencesApplyWhatStandsInProperties(t *testing.T) {
	refer := func(a string) string {
		return `{"type":"object","properties":{"a":` + a + `,"b":{"$ref":"#/properties/a"},"c":{"anyOf":[{"$ref":"#/properties/a"}]}}}`
	}
	cases := map[string]struct{ schema, good, bad string }{
		"a pattern":            {refer(`{"type":"string","pattern":"^x"}`), `"xy"`, `"y"`},
		"an enum":              {refer(`{"enum":["x",2]}`), `2`, `3`},
		"a constant":           {refer(`{"const":"x"}`), `"x"`, `"y"`},
		"a bound":              {refer(`{"type":"integer","minimum":3}`), `3`, `2`},
		"what is in an object": {refer(`{"type":"object","properties":{"d":{"type":"object","additionalProperties":{"enum":["x"]}}}}`), `{"d":{"e":"x"}}`, `{"d":{"e":"y"}}`},
		"what is in a list":    {refer(`{"type":"array","items":{"pattern":"^x"}}`), `["x"]`, `["x","y"]`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			v, err := schema.CompileTool([]byte(tc.schema))
			if err != nil {
				t.Fatal(err)
			}
			for _, at := range []string{"a", "b", "c"} {
				if err := v.Validate([]byte(`{"` + at + `":` + tc.good + `}`)); err != nil {
					t.Errorf("%s: %s: %v", at, tc.good, err)
				}
				if err := v.Validate([]byte(`{"` + at + `":` + tc.bad + `}`)); err == nil {
					t.Errorf("%s: %s fits", at, tc.bad)
				}
			}
		})
	}
}
