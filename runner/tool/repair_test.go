package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRepairJSON(t *testing.T) {
	cases := map[string]struct{ raw, want string }{
		"JSON stays":                              {`{"a":[1,-2.5e3,"x\n\u00e9",null,true,{}]}`, `{"a":[1,-2.5e3,"x\n\u00e9",null,true,{}]}`},
		"a comma too many in an object":           {`{"a":1,}`, `{"a":1}`},
		"a comma too many in an array":            {`{"a":[1,2,]}`, `{"a":[1,2]}`},
		"a missing brace":                         {`{"a":{"b":1}`, `{"a":{"b":1}}`},
		"missing brackets of both kinds":          {`{"a":[1,{"b":2`, `{"a":[1,{"b":2}]}`},
		"missing after a comma":                   {`{"a":1,`, `{"a":1}`},
		"a brace too many":                        {`{"a":1}}`, `{"a":1}`},
		"single quotes":                           {`{'a':'b "c" \'d\''}`, `{"a":"b \"c\" 'd'"}`},
		"an apostrophe in double quotes":          {`{"a":"it's",}`, `{"a":"it's"}`},
		"bare names":                              {`{path_1: "x"}`, `{"path_1":"x"}`},
		"constants of Python":                     {`{"a":True,"b":False,"c":None}`, `{"a":true,"b":false,"c":null}`},
		"a fence with a language":                 {"```json\n{\"a\":1}\n```", `{"a":1}`},
		"a fence without":                         {"```\n{\"a\":1}\n```\n", `{"a":1}`},
		"a raw line end in a text":                {"{\"a\":\"x\ny\r\n\tz\"}", `{"a":"x\ny\r\n\tz"}`},
		"a control character in a text":           {"{\"a\":\"x\x01\"}", `{"a":"x\u0001"}`},
		"an unknown escape":                       {`{"a":"\d+\."}`, `{"a":"\\d+\\."}`},
		"an escape of too few digits":             {`{"a":"\u12"}`, `{"a":"\\u12"}`},
		"a line that goes on":                     {"{\"a\":\"x\\\ny\"}", `{"a":"x\ny"}`},
		"a text with a fence in it":               {"{'a':'```sh\\nls\\n```'}", "{\"a\":\"```sh\\nls\\n```\"}"},
		"a text that is not ended":                {`{"a":"b`, ""},
		"a name that is not ended":                {`{"a`, ""},
		"a value that is missing":                 {`{"a":}`, ""},
		"a value that is missing at the end":      {`{"a":`, ""},
		"a comma that is missing":                 {`{"a":1 "b":2}`, ""},
		"two commas":                              {`[1,,2]`, ""},
		"a quote in a text":                       {`{"a":"say "hi" now"}`, ""},
		"brackets that do not match":              {`{"a":[1}`, ""},
		"words around it":                         {`Here it is: {"a":1}`, ""},
		"words after it":                          {`{"a":1} as asked`, ""},
		"a number cut in the middle":              {`{"a":1.`, ""},
		"a number that is none":                   {`{"a":NaN}`, ""},
		"nothing":                                 {``, ""},
		"nested without end":                      {strings.Repeat("[", 100_000), ""},
		"a fence that is not ended":               {"```json\n{\"a\":1}", ""},
		"a fence in the same line, as it happens": {"```{\"a\":1}```", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, ok := RepairJSON(tc.raw)
			if diff := cmp.Diff(tc.want, string(got)); diff != "" || ok != (tc.want != "") {
				t.Errorf("RepairJSON() says %v, -want +got:\n%s", ok, diff)
			}
		})
	}
}

// Whatever comes in, what comes out is JSON, and JSON comes out as it went in.
func FuzzRepairJSON(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2,],'b':True`, "```json\n{}\n```", `{"a":"\u12\d`, `[[[`, `{"a":1}}`, "\"\xff\""} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		got, ok := RepairJSON(raw)
		if ok && !json.Valid(got) {
			t.Fatalf("RepairJSON(%q) = %s", raw, got)
		}
		if !json.Valid([]byte(raw)) {
			return
		}
		var want bytes.Buffer
		if err := json.Compact(&want, []byte(raw)); err != nil {
			t.Fatal(err)
		}
		if deep := strings.Count(raw, "[")+strings.Count(raw, "{") > maxNesting; !deep && want.String() != string(got) {
			t.Fatalf("RepairJSON(%q) = %s, want it unchanged", raw, got)
		}
	})
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
	r, err := NewRegistry(greet("greet"), foreign(`{"type":"object","properties":{"x":{"anyOf":[{"type":"string"},{"type":"array"}]}}}`))
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
			if object([]byte(raw)) && r.Check(name, json.RawMessage(raw)) == nil && strings.TrimSpace(raw) != string(args) {
				t.Fatalf("Read(%s, %q) = %s, which is not what was written", name, raw, args)
			}
			if _, err := called.Call(t.Context(), Call{Name: name, Args: args}); err != nil {
				t.Fatalf("Call(%s): %v", args, err)
			}
		}
	})
}

func BenchmarkTyped(b *testing.B) {
	for b.Loop() {
		greet("greet")
	}
}

func BenchmarkCall(b *testing.B) {
	r, err := NewRegistry(greet("greet"))
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
	tools, err := NewRegistry(Typed(Spec{
		Name: "count", Input: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","maximum":9007199254740993},"m":{"type":"string"}}}`),
	}, func(_ context.Context, _ Call, in in) (Result, error) {
		got = in.N.String()
		return Result{}, nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	for _, raw := range []string{
		`{"n":9007199254740993}`, `{n: 9007199254740993,}`, `{"n":9007199254740993,"m":null}`, `"{\"n\":9007199254740993}"`, "```json\n{\"n\":9007199254740993}\n```",
	} {
		args := tools.Read("count", raw)
		found, _ := tools.Find("count")
		if _, err := found.Call(t.Context(), Call{Args: args}); err != nil || got != "9007199254740993" {
			t.Errorf("%s comes to the tool as %s: %v", raw, got, err)
		}
		got = ""
	}
	if wrong := tools.Check("count", json.RawMessage(`{"n":9007199254740994}`)); wrong == nil {
		t.Error("one more than the maximum is accepted")
	}
}
