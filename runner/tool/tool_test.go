package tool

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/tool/facts"
)

type greetIn struct {
	Name  string   `json:"name" jsonschema:"who to greet"`
	Times int      `json:"times,omitempty" jsonschema:"how often"`
	Tone  string   `json:"tone,omitempty" enum:"kind,stern" jsonschema:"how"`
	Tags  []string `json:"tags,omitempty" jsonschema:"what else"`
	Loud  bool     `json:"loud,omitempty" jsonschema:"whether to shout"`
}

// greet is a tool that answers with the arguments that it was given.
func greet(name string) Tool {
	return Typed(Spec{Name: name}, func(_ context.Context, _ Call, in greetIn) (Result, error) {
		out, err := json.Marshal(in)
		return Result{Text: string(out)}, err
	})
}

// foreign is a tool with a schema of a server.
func foreign(input string) Tool {
	return Typed(Spec{Name: "foreign", Input: json.RawMessage(input), Internal: facts.Facts{Foreign: true}.Internal()},
		func(_ context.Context, _ Call, in json.RawMessage) (Result, error) {
			return Result{Text: string(in)}, nil
		})
}

func TestTypedMakesItsSchema(t *testing.T) {
	want := `{"type":"object","properties":{` +
		`"name":{"type":"string","description":"who to greet"},` +
		`"times":{"type":"integer","description":"how often"},` +
		`"tone":{"type":"string","description":"how","enum":["kind","stern"]},` +
		`"tags":{"type":["null","array"],"items":{"type":"string"},"description":"what else"},` +
		`"loud":{"type":"boolean","description":"whether to shout"}},` +
		`"required":["name"],"additionalProperties":false}`
	if diff := cmp.Diff(want, string(greet("greet").Input)); diff != "" {
		t.Errorf("Input -want +got:\n%s", diff)
	}
}

func call(t *testing.T, tool Tool, args json.RawMessage) Result {
	t.Helper()
	got, err := tool.Call(t.Context(), Call{Args: args, Emit: func(string) {}})
	if err != nil {
		t.Fatalf("Call: %v", err)
	}
	return got
}

func TestATypedToolHoldsItsOwnCallsToTheSchema(t *testing.T) {
	want := "Error: Invalid arguments for greet: `name` must be a string; got an integer."
	if got := call(t, greet("greet"), json.RawMessage(`{"name":1}`)).Render(); got != want {
		t.Errorf("Render() = %q, want %q", got, want)
	}
}

func TestForeignSchemas(t *testing.T) {
	cases := map[string]struct{ input, args, want string }{
		"alternatives that fit": {
			`{"type":"object","properties":{"x":{"anyOf":[{"type":"string"},{"type":"integer"}]}}}`, `{"x":1}`, `{"x":1}`,
		},
		"nested in what is missing": {
			`{"type":"object","properties":{"a":{"type":"object","required":["b"]}}}`, `{"a":{}}`,
			"Error: Invalid arguments for foreign: `a.b` is missing; there are: b (required).",
		},
		"an enum of objects": {
			`{"type":"object","properties":{"a":{"enum":[{"b":1}]}}}`, `{"a":{"b":2}}`,
			"Error: Invalid arguments for foreign: `a` must be one of {\"b\":1}; got {\"b\":2}.",
		},
		"a schema that does not compile lets objects pass": {`{"$ref":"https://nowhere.example/x"}`, `{"x":1}`, `{"x":1}`},
		"but nothing else": {`{"type":17}`, `[1]`, `Error: Tool call failed: arguments must be a JSON object, such as {"name": "value"}.`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := call(t, foreign(tc.input), json.RawMessage(tc.args))
			if diff := cmp.Diff(tc.want, got.Render()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestRender(t *testing.T) {
	got := Fail("it broke", "try this", "or that").Render()
	if want := "Error: it broke\n- try this\n- or that"; got != want {
		t.Errorf("Render() = %q, want %q", got, want)
	}
}

// sorted returns a tool whose arguments say what it does.
func sorted(t Tool) Tool {
	t.Classify = func(args json.RawMessage) Effect { return Effect(strings.Trim(string(args), `"`)) }
	return t
}

func TestEffectOf(t *testing.T) {
	reads := Typed(Spec{Name: "a", Effect: ReadOnly}, func(context.Context, Call, greetIn) (Result, error) {
		return Result{}, nil
	})
	cases := map[string]struct {
		tool Tool
		args string
		want Effect
	}{
		"as its Spec says":                       {reads, `{}`, ReadOnly},
		"once, unless something is said":         {greet("a"), `{}`, Once},
		"as the arguments say":                   {sorted(reads), `"Idempotent"`, Idempotent},
		"once, when the arguments say nothing":   {sorted(reads), `""`, Once},
		"worse than the Spec, by the arguments":  {sorted(reads), `"Once"`, Once},
		"better than the Spec, by the arguments": {sorted(greet("a")), `"ReadOnly"`, ReadOnly},
	}
	for name, tc := range cases {
		if got := tc.tool.EffectOf(json.RawMessage(tc.args)); got != tc.want {
			t.Errorf("%s: EffectOf() = %s, want %s", name, got, tc.want)
		}
	}
}

func BenchmarkTyped(b *testing.B) {
	for b.Loop() {
		greet("greet")
	}
}
