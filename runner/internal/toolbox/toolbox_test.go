package toolbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/tool/facts"
	"github.com/deckhand-dev/deckhand/runner/internal/toolbox"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

type greetIn struct {
	Name  string   `json:"name" jsonschema:"who to greet"`
	Times int      `json:"times,omitempty" jsonschema:"how often"`
	Tone  string   `json:"tone,omitempty" enum:"kind,stern" jsonschema:"how"`
	Tags  []string `json:"tags,omitempty" jsonschema:"what else"`
	Loud  bool     `json:"loud,omitempty" jsonschema:"whether to shout"`
}

// greet is a tool that answers with the arguments that it was given.
func greet(name string) tool.Tool {
	return tool.Typed(tool.Spec{Name: name}, func(_ context.Context, _ tool.Call, in greetIn) (tool.Result, error) {
		out, err := json.Marshal(in)
		return tool.Result{Text: string(out)}, err
	})
}

// foreign is a tool with a schema of a server.
func foreign(input string) tool.Tool {
	return tool.Typed(tool.Spec{Name: "foreign", Input: json.RawMessage(input), Internal: facts.Facts{Foreign: true}.Internal()},
		func(_ context.Context, _ tool.Call, in json.RawMessage) (tool.Result, error) {
			return tool.Result{Text: string(in)}, nil
		})
}

func toolboxOf(t *testing.T, tools ...tool.Tool) *toolbox.Toolbox {
	t.Helper()
	box, err := toolbox.New(tools...)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return box
}

func call(t *testing.T, called tool.Tool, args json.RawMessage) tool.Result {
	t.Helper()
	got, err := called.Call(t.Context(), tool.Call{Args: args, Emit: func(string) {}})
	if err != nil {
		t.Fatalf("Call: %v", err)
	}
	return got
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
	r := toolboxOf(t, greet("greet"))
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			args := r.Read("greet", tc.raw)
			if !json.Valid(args) {
				t.Fatalf("Read() = %s, which is no JSON", args)
			}
			got := tool.Result{Error: r.Check("greet", args)}
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

func TestToolbox(t *testing.T) {
	r := toolboxOf(t, greet("b"), greet("a"), greet("c"))
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

func TestNewRefuses(t *testing.T) {
	var duplicate *toolbox.DuplicateError
	if _, err := toolbox.New(greet("a"), greet("b"), greet("a")); !errors.As(err, &duplicate) || duplicate.Name != "a" {
		t.Errorf("two tools of a name: error %v", err)
	}
	for _, name := range []string{"", "a b", "ä", strings.Repeat("a", 65)} {
		var wrong *toolbox.NameError
		if _, err := toolbox.New(greet(name)); !errors.As(err, &wrong) || wrong.Name != name {
			t.Errorf("a tool named %q: error %v", name, err)
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
		r := toolboxOf(t, foreign(input))
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
			own := tool.Typed(tool.Spec{Name: "own", Input: json.RawMessage(tc.input)}, func(context.Context, tool.Call, json.RawMessage) (tool.Result, error) {
				t.Error("the tool is called")
				return tool.Result{}, nil
			})
			r := toolboxOf(t, own)
			wrong := r.Check("own", json.RawMessage(tc.args))
			if wrong == nil || !strings.Contains(wrong.Message, "Invalid arguments for own: they cannot be validated: ") || !strings.Contains(wrong.Message, tc.want) {
				t.Errorf("Check() = %v", wrong)
			}
			if got := call(t, own, json.RawMessage(tc.args)); got.Error == nil {
				t.Errorf("tool.Call() = %+v", got)
			}
			if why := r.TakeUnvalidated("own"); why != "" {
				t.Errorf("reported as not validated: %s", why)
			}
		})
	}
}

// Whatever a model writes as arguments, they are read as JSON, what fits is not
// changed, and a call with what passes the check is no failure of the runner.
func FuzzReadArgs(f *testing.F) {
	for _, seed := range []string{
		`{"name":"Ann"}`, `"{\"name\":null}"`, `{"name":"Ann","times":null}`, `{'name':'Ann',}`, ``, `null`, `[1]`, `{"x":1e999}`,
		"```json\n{\"name\":\"a\"}\n```", `{"name":"a","name":1}`, "{\"name\":\"\xff\"}", `{"x":[{"x":[{"x":1`,
	} {
		f.Add(seed)
	}
	r, err := toolbox.New(greet("greet"), foreign(`{"type":"object","properties":{"x":{"anyOf":[{"type":"string"},{"type":"array"}]}}}`))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		for _, name := range []string{"greet", "foreign", "unknown"} {
			args := r.Read(name, raw)
			if !json.Valid(args) {
				t.Fatalf("Read(%s, %q) = %s", name, raw, args)
			}
			called, known := r.Find(name)
			if !known || r.Check(name, args) != nil {
				continue
			}
			if isObject(raw) && r.Check(name, json.RawMessage(raw)) == nil && strings.TrimSpace(raw) != string(args) {
				t.Fatalf("Read(%s, %q) = %s, which is not what was written", name, raw, args)
			}
			if _, err := called.Call(t.Context(), tool.Call{Name: name, Args: args}); err != nil {
				t.Fatalf("tool.Call(%s): %v", args, err)
			}
		}
	})
}

// isObject reports whether a text is a JSON object.
func isObject(raw string) bool {
	return strings.HasPrefix(strings.TrimSpace(raw), "{") && json.Valid([]byte(raw))
}

func BenchmarkCall(b *testing.B) {
	r, err := toolbox.New(greet("greet"))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if e := r.Check("greet", r.Read("greet", `{"name":"Ann","times":2}`)); e != nil {
			b.Fatal(e)
		}
	}
}

// However a model writes its arguments, a number comes to the tool with the digits
// that were written.
func TestNumbersKeepTheirDigitsThroughRepair(t *testing.T) {
	type in struct {
		N json.Number `json:"n"`
	}
	var got string
	tools, err := toolbox.New(tool.Typed(tool.Spec{
		Name: "count", Input: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","maximum":9007199254740993},"m":{"type":"string"}}}`),
	}, func(_ context.Context, _ tool.Call, in in) (tool.Result, error) {
		got = in.N.String()
		return tool.Result{}, nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	for _, raw := range []string{
		`{"n":9007199254740993}`, `{n: 9007199254740993,}`, `{"n":9007199254740993,"m":null}`, `"{\"n\":9007199254740993}"`, "```json\n{\"n\":9007199254740993}\n```",
	} {
		args := tools.Read("count", raw)
		found, _ := tools.Find("count")
		if _, err := found.Call(t.Context(), tool.Call{Args: args}); err != nil || got != "9007199254740993" {
			t.Errorf("%s comes to the tool as %s: %v", raw, got, err)
		}
		got = ""
	}
	if wrong := tools.Check("count", json.RawMessage(`{"n":9007199254740994}`)); wrong == nil {
		t.Error("one more than the maximum is accepted")
	}
}
