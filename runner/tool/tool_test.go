package tool

import (
	"context"
	"encoding/json"
	"errors"
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
	return Typed(Spec{Name: "foreign", Input: json.RawMessage(input), Internal: facts.Facts{Foreign: true}.Seal()},
		func(_ context.Context, _ Call, in json.RawMessage) (Result, error) {
			return Result{Text: string(in)}, nil
		})
}

func registry(t *testing.T, tools ...Tool) *Registry {
	t.Helper()
	r, err := NewRegistry(tools...)
	if err != nil {
		t.Fatalf("NewRegistry: %v", err)
	}
	return r
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

// What a model writes as arguments, and what the tool makes of it.
func TestArguments(t *testing.T) {
	const known = "; there are: name (required), loud, tags, times, tone."
	const malformed = "Error: Tool call failed: arguments were not valid JSON. Please check your tool call format and try again."
	cases := map[string]struct{ raw, want string }{
		"as they should be":           {`{"name":"Ann","times":2}`, `{"name":"Ann","times":2}`},
		"repaired":                    {"```json\n{'name': 'Ann', 'loud': True,}\n```", `{"name":"Ann","loud":true}`},
		"encoded twice":               {`"{\"name\":\"Ann\"}"`, `{"name":"Ann"}`},
		"null for what is left out":   {`{"name":"Ann","times":null,"tone":null}`, `{"name":"Ann"}`},
		"nothing at all":              {``, "Error: Invalid arguments for greet: `name` is missing" + known},
		"missing":                     {`{"times":1}`, "Error: Invalid arguments for greet: `name` is missing" + known},
		"null for what is needed":     {`{"name":null}`, "Error: Invalid arguments for greet: `name` must be a string; got null."},
		"unknown":                     {`{"name":"Ann","nick":"Bob"}`, "Error: Invalid arguments for greet: `nick` is not known" + known},
		"known but for the case":      {`{"Name":"Ann"}`, "Error: Invalid arguments for greet: `name` is missing" + known},
		"of another type":             {`{"name":7}`, "Error: Invalid arguments for greet: `name` must be a string; got an integer."},
		"a fraction":                  {`{"name":"Ann","times":1.5}`, "Error: Invalid arguments for greet: `times` must be an integer; got a number."},
		"an item of another type":     {`{"name":"Ann","tags":["a",true]}`, "Error: Invalid arguments for greet: `tags[1]` must be a string; got a boolean."},
		"not one of the values":       {`{"name":"Ann","tone":"rude"}`, "Error: Invalid arguments for greet: `tone` must be one of \"kind\", \"stern\"; got \"rude\"."},
		"an array":                    {`["Ann"]`, "Error: Tool call failed: arguments must be a JSON object, such as {\"name\": \"value\"}."},
		"a text that is no JSON":      {`greet Ann`, malformed},
		"cut in the middle of a text": {`{"name":"An`, malformed},
		"repaired, but not fitting":   {`{'nick': 'Ann'}`, malformed},
	}
	r := registry(t, greet("greet"))
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			args := r.Read("greet", tc.raw)
			if !json.Valid(args) {
				t.Fatalf("Read() = %s, which is no JSON", args)
			}
			got := Result{Error: r.Check("greet", args)}
			if got.Error == nil {
				got = call(t, greet("greet"), args)
			}
			text, _, _ := strings.Cut(got.Render(), "\n")
			if diff := cmp.Diff(tc.want, text); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
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

func TestRegistry(t *testing.T) {
	r := registry(t, greet("b"), greet("a"), greet("c"))
	var got []string
	for _, s := range r.Specs() {
		got = append(got, s.Name)
	}
	if diff := cmp.Diff([]string{"a", "b", "c"}, got); diff != "" {
		t.Errorf("Specs() -want +got:\n%s", diff)
	}
	if found, ok := r.Find("b"); !ok || found.Name != "b" {
		t.Errorf("Find(b) = %v, %v", found, ok)
	}
	if _, ok := r.Find("d"); ok {
		t.Error("Find(d) found something")
	}
	for raw, want := range map[string]string{`{"x":1}`: `{"x":1}`, `{x`: `"{x"`, `[1]`: `"[1]"`} {
		if got := string(r.Read("unknown", raw)); got != want {
			t.Errorf("Read(%s) for a tool that is not there = %s, want %s", raw, got, want)
		}
	}
}

func TestRegistryRefuses(t *testing.T) {
	var duplicate *DuplicateError
	if _, err := NewRegistry(greet("a"), greet("b"), greet("a")); !errors.As(err, &duplicate) || duplicate.Name != "a" {
		t.Errorf("two tools of a name: error %v", err)
	}
	for _, name := range []string{"", "a b", "ä", strings.Repeat("a", 65)} {
		var wrong *NameError
		if _, err := NewRegistry(greet(name)); !errors.As(err, &wrong) || wrong.Name != name {
			t.Errorf("a tool named %q: error %v", name, err)
		}
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

// A server may offer a schema that cannot be used, or that takes too long to validate with.
func TestArgumentsThatCannotBeValidatedPass(t *testing.T) {
	for input, args := range map[string]string{
		`{"type":"object","allOf":[{"$ref":"#"}]}`:                                  `{"a":1}`,
		`{"$dynamicAnchor":"x","properties":{"a":{"$dynamicRef":"#x"}}}`:            `{"a":1}`,
		`{"properties":{"a":{"pattern":"` + strings.Repeat(".{1000}", 100) + `"}}}`: `{"a":"b"}`,
	} {
		r := registry(t, foreign(input))
		if wrong := r.Check("foreign", json.RawMessage(args)); wrong != nil {
			t.Errorf("%s: %v", input, wrong)
		}
		if r.Check("foreign", json.RawMessage(args)); r.TakeUnvalidated("foreign") == "" || r.TakeUnvalidated("foreign") != "" {
			t.Errorf("%s: not reported once", input)
		}
		if r.Check("foreign", json.RawMessage(args)); r.TakeUnvalidated("foreign") != "" {
			t.Errorf("%s: reported again", input)
		}
		if wrong := r.Check("foreign", json.RawMessage(`[]`)); wrong == nil {
			t.Errorf("%s: accepts a list", input)
		}
	}
}

// Nobody but the runner checks the arguments of a tool that is not of an MCP server.
func TestArgumentsThatCannotBeValidatedAreRefused(t *testing.T) {
	const many = 3000
	cases := map[string]struct{ input, args, want string }{
		"a schema that applies to too many parts": {
			`{"properties":{"to":{"enum":["a","b"]},"of":{"type":"array","items":{"anyOf":[` + strings.Repeat(`{"maxLength":1},`, 50) + `{"maxLength":2}]}}}}`,
			`{"to":"evil","of":[` + strings.Repeat(`"x",`, many) + `"x"]}`, "takes too long",
		},
		"a cycle without an end":      {`{"type":"object","allOf":[{"$ref":"#"}]}`, `{}`, "takes too long"},
		"a reference to elsewhere":    {`{"properties":{"a":{"$ref":"https://nowhere.example/x"}}}`, `{"a":1}`, "https://nowhere.example/x"},
		"a pattern that is too large": {`{"properties":{"a":{"pattern":"` + strings.Repeat(".{1000}", 100) + `"}}}`, `{"a":"b"}`, "instructions"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			own := Typed(Spec{Name: "own", Input: json.RawMessage(tc.input)}, func(context.Context, Call, json.RawMessage) (Result, error) {
				t.Error("the tool is called")
				return Result{}, nil
			})
			r := registry(t, own)
			wrong := r.Check("own", json.RawMessage(tc.args))
			if wrong == nil || !strings.Contains(wrong.Message, "Invalid arguments for own: they cannot be validated: ") || !strings.Contains(wrong.Message, tc.want) {
				t.Errorf("Check() = %v", wrong)
			}
			if got := call(t, own, json.RawMessage(tc.args)); got.Error == nil {
				t.Errorf("Call() = %+v", got)
			}
			if why := r.TakeUnvalidated("own"); why != "" {
				t.Errorf("reported as not validated: %s", why)
			}
		})
	}
}
