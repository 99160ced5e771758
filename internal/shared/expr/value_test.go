package expr_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/internal/shared/expr"
	"github.com/deckhand-dev/deckhand/internal/workflow/celkubernetes"
)

func TestVariables(t *testing.T) {
	for name, tt := range map[string]struct {
		of   expr.Type
		give any
		want string // the value, or what the error says
	}{
		"JSON":                             {expr.Dyn(), raw(`{"b":[1,1.5,1e2,"x",null,true],"a":{}}`), `{"a":{},"b":[1,1.5,100,"x",null,true]}`},
		"a whole number of any value":      {expr.Dyn(), raw(`9007199254740993`), `9007199254740993`},
		"a number beyond 64 bits":          {expr.Dyn(), raw(`9223372036854775808`), `9223372036854776000`},
		"a number beyond all":              {expr.Dyn(), raw(`1e999`), "x is not a value of JSON"},
		"a whole number, as a double":      {expr.Int(), raw(`1e3`), `1000`},
		"a fraction for an int":            {expr.Int(), raw(`1.5`), "x is not an int"},
		"too many digits for an int":       {expr.Int(), raw(`9223372036854775808`), "x is not an int"},
		"the greatest int":                 {expr.Int(), raw(`9223372036854775807`), `9223372036854775807`},
		"an int for a number":              {expr.Double(), raw(`3`), `3`},
		"text for a number":                {expr.Double(), raw(`"3"`), "x is not a double"},
		"a number for text":                {expr.String(), raw(`3`), "x is not a string"},
		"text for a condition":             {expr.Bool(), raw(`"true"`), "x is not a bool"},
		"an object for a list":             {expr.List(expr.Int()), raw(`{}`), "x is not a list(int)"},
		"an item that does not fit":        {expr.List(expr.Int()), raw(`[1,"2"]`), "x[1] is not an int"},
		"a list for an object":             {expr.Object("Thing", map[string]expr.Type{"a": expr.Int()}), raw(`[]`), "x is not the object Thing"},
		"a field that does not fit":        {expr.Map(expr.Map(expr.Int())), raw(`{"a":{"b":""}}`), "x.a.b is not an int"},
		"an item of a field":               {expr.Map(expr.List(expr.Int())), raw(`{"a":[1,""]}`), "x.a[1] is not an int"},
		"null for text":                    {expr.String(), raw(`null`), "x is not a string"},
		"no JSON":                          {expr.Dyn(), raw(`{`), "x is not JSON"},
		"two values":                       {expr.Dyn(), raw(`1 2`), "x is not JSON"},
		"nothing":                          {expr.String(), expr.Absent, "x has no value"},
		"no JSON at all":                   {expr.Dyn(), raw(``), "x has no value"},
		"nil":                              {expr.Dyn(), nil, `null`},
		"values of Go":                     {expr.Dyn(), map[string]any{"a": []any{1}, "b": "x", "c": true, "d": []json.RawMessage{raw(`[1]`)}, "e": json.Number("2.5")}, `{"a":[1],"b":"x","c":true,"d":[[1]],"e":2.5}`},
		"a channel":                        {expr.Dyn(), make(chan int), "x is not a value of JSON"},
		"text that is no Unicode":          {expr.String(), "a\xffb", "\"a\uFFFDb\""},
		"a field that is there as null":    {expr.Object("Thing", map[string]expr.Type{"a": expr.Optional(expr.Int()), "b": expr.Int()}), raw(`{"a":null,"b":1}`), `{"b":1}`},
		"a field that is absent":           {expr.Object("Thing", map[string]expr.Type{"a": expr.Optional(expr.Int())}), map[string]any{"a": expr.Absent}, `{}`},
		"a field that schemas do not name": {expr.Object("Thing", map[string]expr.Type{"a": expr.Int()}), raw(`{"a":1,"z":2}`), `{"a":1,"z":2}`},
		"objects deep within":              {expr.Dyn(), raw(strings.Repeat("[", 2000) + strings.Repeat("]", 2000)), "the value is nested deeper than 1000"},
	} {
		t.Run(name, func(t *testing.T) {
			env, err := celkubernetes.Language.NewEnv(map[string]expr.Type{"x": tt.of})
			if err != nil {
				t.Fatal(err)
			}
			p, e := env.Compile("x", expr.Dyn())
			if e != nil {
				t.Fatal(e)
			}
			got, err := p.Eval(map[string]any{"x": tt.give})
			if err != nil {
				if !strings.Contains(err.Error(), tt.want) {
					t.Errorf("got %v, want %s", err, tt.want)
				}
				return
			}
			if diff := cmp.Diff(tt.want, string(got)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestOnlyWhatIsReadIsOpened(t *testing.T) {
	env := newEnv(t)
	vars := values()
	vars["input"] = raw(`not JSON`)
	vars["nodes"].(map[string]any)["items"] = map[string]any{"output": raw(`not JSON`)}
	vars["nodes"].(map[string]any)["sure"] = raw(`{"output": {"score": 7, "verdict": 3}}`)
	p, e := env.Compile("nodes.sure.output.score", expr.Dyn())
	if e != nil {
		t.Fatal(e)
	}
	if got, err := p.Eval(vars); err != nil || string(got) != "7" {
		t.Error(string(got), err)
	}
	if p, e = env.Compile("nodes.sure.output.verdict", expr.Dyn()); e != nil {
		t.Fatal(e)
	}
	if _, err := p.Eval(vars); err == nil || !strings.Contains(err.Error(), "nodes.sure.output.verdict is not a string") {
		t.Error(err)
	}
}

func TestTypesForPeople(t *testing.T) {
	for want, of := range map[string]expr.Type{
		"any": expr.Dyn(), "string": expr.String(), "int": expr.Int(), "double": expr.Double(), "bool": expr.Bool(),
		"list(Review)": expr.List(review(t)), "optional(int)": expr.Optional(expr.Optional(expr.Int())), "map(list(string))": expr.Map(expr.List(expr.String())),
	} {
		if got := of.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestNewEnvRefusesTwoObjectsOfOneName(t *testing.T) {
	thing := func(of expr.Type) expr.Type { return expr.Object("Thing", map[string]expr.Type{"a": of}) }
	_, err := celkubernetes.Language.NewEnv(map[string]expr.Type{"x": thing(expr.Int()), "y": expr.List(thing(expr.String()))})
	if err == nil || !strings.Contains(err.Error(), "two objects have the name Thing") {
		t.Error(err)
	}
	if _, err := celkubernetes.Language.NewEnv(map[string]expr.Type{"x": thing(expr.Int()), "y": expr.Optional(thing(expr.Int()))}); err != nil {
		t.Error(err)
	}
}

func TestFromSchema(t *testing.T) {
	for name, tt := range map[string]struct{ schema, want string }{
		"text":               {`{"type":"string","pattern":"x"}`, "string"},
		"a list":             {`{"type":"array","items":{"type":"integer"}}`, "list(int)"},
		"a free object":      {`{"type":"object"}`, "map(any)"},
		"a freer object":     {`{"type":"object","additionalProperties":true}`, "map(any)"},
		"a map":              {`{"type":"object","additionalProperties":{"type":"number"}}`, "map(double)"},
		"an object":          {`{"type":"object","properties":{"a":{"type":"boolean"}}}`, "Name"},
		"objects in a list":  {`{"type":"array","items":{"type":"object","properties":{"a":{"type":"boolean"}}}}`, "list(Name[])"},
		"no type":            {`{}`, "any"},
		"no JSON":            {`{`, "reading the schema of Name"},
		"a type of no one's": {`{"type":"array","items":{"type":"null"}}`, `the schema of Name[] has the type "null"`},
		"depth":              {strings.Repeat(`{"type":"array","items":`, 40) + `{}` + strings.Repeat("}", 40), "is nested too deep"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := expr.FromSchema("Name", raw(tt.schema))
			switch {
			case err != nil && !strings.Contains(err.Error(), tt.want):
				t.Errorf("got %v, want %s", err, tt.want)
			case err == nil && got.String() != tt.want:
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}
