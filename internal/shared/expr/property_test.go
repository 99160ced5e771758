package expr_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/internal/shared/expr"
	"github.com/deckhand-dev/deckhand/internal/workflow/celkubernetes"
)

// A maker generates schemas and values that are valid for them.
type maker struct{ *rand.Rand }

func (m maker) schema(depth int) map[string]any {
	kinds := []string{"string", "integer", "number", "boolean"}
	if depth < 4 {
		kinds = append(kinds, "array", "object", "object")
	}
	s := map[string]any{"type": kinds[m.IntN(len(kinds))]}
	switch s["type"] {
	case "array":
		s["items"] = m.schema(depth + 1)
	case "object":
		m.members(s, depth)
	}
	return s
}

func (m maker) members(s map[string]any, depth int) {
	if m.IntN(5) == 0 {
		if m.IntN(2) == 0 {
			s["additionalProperties"] = m.schema(depth + 1)
		}
		return
	}
	properties, required := map[string]any{}, []string{}
	for i := range 1 + m.IntN(4) {
		name := fmt.Sprintf("%s%d", []string{"a", "in", "has", "@x", "é", "a-b", "null"}[m.IntN(7)], i)
		properties[name] = m.schema(depth + 1)
		if m.IntN(2) == 0 {
			required = append(required, name)
		}
	}
	s["properties"], s["required"] = properties, required
}

func (m maker) value(s map[string]any, depth int) any {
	switch s["type"] {
	case "string":
		return m.text()
	case "integer":
		return []any{m.Int64() - m.Int64(), int64(m.IntN(100)), int64(-1) << 63}[m.IntN(3)]
	case "number":
		return []any{m.NormFloat64(), float64(m.IntN(100)), 1e300, -1e-300}[m.IntN(4)]
	case "boolean":
		return m.IntN(2) == 0
	case "array":
		all := []any{}
		for range m.IntN(4) {
			all = append(all, m.value(s["items"].(map[string]any), depth))
		}
		return all
	}
	return m.object(s, depth)
}

func (m maker) object(s map[string]any, depth int) any {
	all := map[string]any{}
	properties, ok := s["properties"].(map[string]any)
	if !ok {
		for range m.IntN(4) {
			if of, ok := s["additionalProperties"].(map[string]any); ok {
				all[m.text()] = m.value(of, depth)
			} else if depth < 6 {
				all[m.text()] = []any{nil, m.text(), int64(1), 2.5, []any{nil}}[m.IntN(5)]
			}
		}
		return all
	}
	for name, of := range properties {
		if reflect.ValueOf(s["required"]).Len() == 0 || contains(s["required"].([]string), name) || m.IntN(2) == 0 {
			all[name] = m.value(of.(map[string]any), depth)
		}
	}
	return all
}

func contains(all []string, name string) bool {
	return strings.Contains("\x00"+strings.Join(all, "\x00")+"\x00", "\x00"+name+"\x00")
}

// text returns a text of characters that need escaping.
func (m maker) text() string {
	var b strings.Builder
	for range m.IntN(12) {
		b.WriteString([]string{"${{", "}}", "$", "{", "}", `"`, "'", `\`, "\n", "a", " ", "é", "\u2028", "</x>", "input.x", "`", "//", `"""`}[m.IntN(18)])
	}
	return b.String()
}

func compact(t *testing.T, v any) string {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(b.String())
}

func TestAnyValueOfAnySchemaIsItself(t *testing.T) {
	m := maker{rand.New(rand.NewPCG(1, 2))}
	for range 200 {
		schema := m.schema(0)
		want := compact(t, m.value(schema, 0))
		of, err := expr.FromSchema("Thing", json.RawMessage(compact(t, schema)))
		if err != nil {
			t.Fatal(err)
		}
		env, err := celkubernetes.Language.NewEnv(map[string]expr.Type{"x": of, "y": expr.Optional(of), "z": expr.List(expr.Optional(of)), "any": expr.Dyn()})
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{`x`, `y.value()`, `z[1].value()`, `any`, `[x][0]`, `{"x": x}.x`, `y.optMap(v, v).value()`, `dyn(x) == any ? x : x`} {
			p, e := env.Compile(text, expr.Dyn())
			if e != nil {
				t.Fatal(e)
			}
			raw := json.RawMessage(want)
			got, err := p.Eval(map[string]any{"x": raw, "y": raw, "z": []any{expr.Absent, raw}, "any": raw})
			if err != nil {
				t.Fatalf("%s of %s: %v", text, want, err)
			}
			if diff := cmp.Diff(want, string(got)); diff != "" {
				t.Fatalf("%s of %s (-want +got):\n%s", text, schema, diff)
			}
		}
	}
}

func TestTextIsPutInAsItIs(t *testing.T) {
	env, err := celkubernetes.Language.NewEnv(map[string]expr.Type{"x": expr.String()})
	if err != nil {
		t.Fatal(err)
	}
	template, e := env.Template("<${{ x }}|${{ x + \"}}\" }}>")
	if e != nil {
		t.Fatal(e)
	}
	m := maker{rand.New(rand.NewPCG(3, 4))}
	for range 500 {
		value := m.text()
		for _, x := range []any{value, json.RawMessage(compact(t, value))} {
			got, err := template.Text(map[string]any{"x": x}, 10_000)
			if err != nil {
				t.Fatal(err)
			}
			if want := "<" + value + "|" + value + "}}>"; got != want {
				t.Fatalf("got %q, want %q", got, want)
			}
		}
	}
}

func TestWordsOfATemplateStay(t *testing.T) {
	env := newEnv(t)
	m := maker{rand.New(rand.NewPCG(5, 6))}
	for range 500 {
		words := strings.ReplaceAll(m.text(), "${{", "")
		if strings.Contains(words, "${{") || strings.HasSuffix(words, "$") {
			continue
		}
		template, e := env.Template(words + "${{ run.name }}" + words)
		if e != nil {
			t.Fatal(words, e)
		}
		got, err := template.Text(values(), 10_000)
		if want := words + "r-1" + words; err != nil || got != want {
			t.Fatalf("got %q, %v, want %q", got, err, want)
		}
	}
}

// A string literal evaluates to the same string.
func TestTextInQuotesWithinATemplate(t *testing.T) {
	env := newEnv(t)
	m := maker{rand.New(rand.NewPCG(7, 8))}
	for range 500 {
		value := m.text()
		quoted := compact(t, value)
		template, e := env.Template("a ${{ [" + quoted + ", {\"x\": {\"y\": " + quoted + "}}.x.y][1] }} b")
		if e != nil {
			t.Fatal(quoted, e)
		}
		got, err := template.Text(values(), 10_000)
		if want := "a " + value + " b"; err != nil || got != want {
			t.Fatalf("got %q, %v, want %q", got, err, want)
		}
	}
}

func TestManyAtATime(t *testing.T) {
	env := newEnv(t)
	shared, e := env.Template(`${{ nodes.items.output.map(r, r.?score.orValue(0)) }} ${{ nodes.maybe.?output.?note.orValue("x") }}`)
	if e != nil {
		t.Fatal(e)
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 20 {
				if got, err := shared.Text(values(), 100); err != nil || got != "[1,0,3] x" {
					t.Error(got, err)
				}
				p, e := env.Compile(fmt.Sprintf("nodes.sure.output.score + %d", i), expr.Int())
				if e != nil {
					t.Error(e)
					return
				}
				if got, err := p.Eval(values()); err != nil || string(got) != fmt.Sprint(7+i) {
					t.Error(string(got), err)
				}
			}
		})
	}
	all.Wait()
}
