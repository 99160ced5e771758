package inputtext

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/internal/shared/expr"
	"github.com/deckhand-dev/deckhand/internal/shared/schema"
	"github.com/deckhand-dev/deckhand/internal/shared/template"
)

// A path has the value that CEL gives to the same path, whatever the schema and the values.
func TestAPathHasTheValueOfCEL(t *testing.T) {
	compared := 0
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 1))
		of := randomObject(r, 3)
		raw, err := json.Marshal(randomValue(r, of, true))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(mustJSON(t, of), raw); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		values, err := NewValues(raw)
		if err != nil {
			t.Fatal(err)
		}
		in := Of(mustJSON(t, of))
		for _, path := range randomPaths(r, of, values.raw) {
			if checkPath(t, in, values, path) {
				compared++
			}
		}
	}
	if compared < 300 {
		t.Errorf("%d paths with a value were compared, want 300", compared)
	}
}

// checkPath compares a path with what CEL makes of it, and reports whether it has a value.
func checkPath(t *testing.T, in *Input, values *Values, path template.Path) bool {
	t.Helper()
	source, ok := path.CEL()
	if !ok {
		t.Fatalf("CEL cannot write %s", path)
	}
	text, err := in.Parse("${{ "+path.String()+" }}", Omits)
	if err != nil || !text.Parts[0].Value.isPath {
		t.Fatalf("%s is not read as a path: %v", path, err)
	}
	env, err := in.env()
	if err != nil {
		t.Fatal(err)
	}
	for _, optional := range []bool{false, true} {
		program, wrong := env.Compile(withMarks(source, optional), expr.Optional(expr.Dyn()))
		if wrong != nil && !wrong.Absent && !strings.Contains(wrong.Message, "may be absent") {
			t.Fatalf("CEL refuses %s: %v", source, wrong)
		}
		if wrong != nil {
			continue
		}
		want, there, err := program.Find(map[string]any{"input": values.raw})
		got, found, _ := text.Parts[0].Value.Find(values)
		if there != found || (err != nil) != (!found && !optional) || found && !reflect.DeepEqual(decoded(t, got), decoded(t, want)) {
			t.Fatalf("of %s, %s is %s, %t; with CEL it is %s, %t, %v", values.raw, path, got, found, want, there, err)
		}
	}
	_, found, _ := text.Parts[0].Value.Find(values)
	return found
}

// withMarks returns a path with a question mark at each step.
func withMarks(source string, is bool) string {
	if !is {
		return source
	}
	return strings.NewReplacer(".`", ".?`", "[", "[?").Replace(source)
}

func decoded(t *testing.T, raw json.RawMessage) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

func mustJSON(t *testing.T, v any) json.RawMessage {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// names are those of properties: CEL needs backticks for some.
var names = []string{"a", "b_2", "in", "my-key", "x y", "true", "Z.z"}

func randomObject(r *rand.Rand, depth int) map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, name := range names {
		if r.IntN(3) == 0 {
			continue
		}
		properties[name] = randomSchema(r, depth-1)
		if r.IntN(3) > 0 {
			required = append(required, name)
		}
	}
	out := map[string]any{"type": "object", "properties": properties, "required": required}
	if r.IntN(4) == 0 {
		out["additionalProperties"] = true
	}
	return out
}

func randomSchema(r *rand.Rand, depth int) map[string]any {
	if depth > 0 {
		switch r.IntN(4) {
		case 0:
			return randomObject(r, depth)
		case 1:
			return map[string]any{"type": "array", "items": randomSchema(r, depth-1)}
		case 2:
			return map[string]any{"type": "object", "additionalProperties": randomSchema(r, depth-1)}
		}
	}
	return map[string]any{"type": []string{"string", "integer", "number", "boolean"}[r.IntN(4)]}
}

// randomValue returns a value of a schema. Numbers are among those that JSON's decoder keeps.
func randomValue(r *rand.Rand, of map[string]any, isRoot bool) any {
	switch of["type"] {
	case "string":
		return []string{"", "x", "${{ input.a }}", "ä\n\"", "12"}[r.IntN(5)]
	case "integer":
		return r.IntN(2000) - 1000
	case "number":
		return []float64{0, 1.5, -2, 1e20}[r.IntN(4)]
	case "boolean":
		return r.IntN(2) == 0
	case "array":
		var items []any
		for range r.IntN(3) {
			items = append(items, randomValue(r, of["items"].(map[string]any), false))
		}
		return append([]any{}, items...)
	}
	return randomMembers(r, of, isRoot)
}

func randomMembers(r *rand.Rand, of map[string]any, isRoot bool) map[string]any {
	out := map[string]any{}
	properties, _ := of["properties"].(map[string]any)
	required, _ := of["required"].([]string)
	for name, property := range properties {
		must := false
		for _, other := range required {
			must = must || other == name
		}
		if must || r.IntN(2) == 0 {
			out[name] = randomValue(r, property.(map[string]any), false)
		}
	}
	if more, ok := of["additionalProperties"].(map[string]any); ok && !isRoot {
		out[names[r.IntN(len(names))]] = randomValue(r, more, false)
	}
	return out
}

// randomPaths returns paths that a schema allows, to all depths.
func randomPaths(r *rand.Rand, of map[string]any, _ json.RawMessage) []template.Path {
	var all []template.Path
	var add func(template.Path, map[string]any)
	add = func(path template.Path, of map[string]any) {
		all = append(all, path)
		at := func(k template.Key) template.Path { return append(append(template.Path{}, path...), k) }
		if items, ok := of["items"].(map[string]any); ok {
			add(at(template.Key{Index: r.IntN(2)}), items)
		}
		if more, ok := of["additionalProperties"].(map[string]any); ok {
			add(at(template.Key{Name: names[r.IntN(len(names))], Index: -1}), more)
		}
		properties, _ := of["properties"].(map[string]any)
		for name, property := range properties {
			add(at(template.Key{Name: name, Index: -1}), property.(map[string]any))
		}
	}
	add(template.Path{}, of)
	return all
}

// A text that has paths only does not set up CEL.
func TestPathsNeedNoCEL(t *testing.T) {
	in := Of(json.RawMessage(`{"type":"object","required":["a"],"properties":{"a":{"type":"string"},"b-c":{"type":"string"},"d":{"type":"array","items":{"type":"string"}}}}`))
	in.env = func() (*expr.Env, error) { return nil, errors.New("CEL is set up") }
	values, err := NewValues(json.RawMessage(`{"a":"x","b-c":"y","d":["z"]}`))
	if err != nil {
		t.Fatal(err)
	}
	text, err := in.Parse("${{ input.a }} ${{ input.b-c }} ${{ input.d[0] }} ${{ input[\"a\"] }} $${{ input.a.trim() }}", MayLack)
	if err != nil {
		t.Fatal(err)
	}
	got, err := text.Bind(values, plain)
	if err == nil {
		err = text.Compile()
	}
	if want := "x y z x ${{ input.a.trim() }}"; got != want || err != nil {
		t.Errorf("Bind() = %q, %v, want %q", got, err, want)
	}
	if _, err := in.Parse("${{ input.e }}", MayLack); err != nil {
		t.Errorf("Parse() compiles: %v", err)
	}
}

// Whatever the text and the values: no panic, an error with a position, and a text of bound
// values that is escaped is bound to itself.
func FuzzBind(f *testing.F) {
	const values = `{"name":"Ann","repo":{"tags":["a",{"b":1}]},"evil":"${{ input.name }}"}`
	for _, text := range []string{"${{ input.name }}", `${{ input["repo"].tags[1] }}`, "$${{", "$$${{ input", "a\n${{input.x}}\n", "${{ input[\"\\u00e4\"] }}", "${{ input.name + '}}' }}", "${{ input.?x }}"} {
		f.Add(text, values)
	}
	f.Fuzz(func(t *testing.T, text, values string) {
		bound, err := Bind(text, nil, json.RawMessage(values))
		if wrong, ok := errors.AsType[*expr.Error](err); ok && (wrong.Line < 1 || wrong.Column < 1) {
			t.Fatalf("%q: %v has no position", text, err)
		}
		if checked := Check(text, nil); err == nil && checked != nil {
			t.Fatalf("%q is bound, and refused: %v", text, checked)
		}
		if err != nil {
			return
		}
		if twice, err := Bind(template.Literal(bound), nil, nil); err != nil || twice != bound {
			t.Fatalf("%q escaped is bound to %q, %v", bound, twice, err)
		}
	})
}

func BenchmarkBind(b *testing.B) {
	const of = `{"type":"object","required":["a"],"properties":{"a":{"type":"string"}}}`
	for name, expression := range map[string]string{"a path": "input.a", "an expression": "input.a.trim()"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := Bind(fmt.Sprintf("Write about ${{ %s }}.", expression), json.RawMessage(of), json.RawMessage(`{"a":"tides"}`)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
