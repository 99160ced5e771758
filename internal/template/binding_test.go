package template_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/internal/template"
)

const input = `{
	"name": "Ann", "empty": "", "n": 1234567890123456789, "price": 1.50, "yes": true, "none": null,
	"repo": {"url": "https://x.example/?a=1&b=<2>", "tags": ["a", {"b": [ 7, "seven" ]}], "my-key": "k", "with space": "s", "ä": "umlaut"},
	"list": [], "object": {},
	"evil": "${{ input.name }} and $${{ }}", "quote": "say \"hi\"\n"
}`

func TestBind(t *testing.T) {
	cases := map[string]struct{ text, want string }{
		"no place":                        {"Hello, {{name}} ${name} $ {{ }}", "Hello, {{name}} ${name} $ {{ }}"},
		"nothing":                         {"", ""},
		"a string as it is":               {"Hello, ${{ input.name }}!", "Hello, Ann!"},
		"a string of more than letters":   {"${{ input.quote }}", "say \"hi\"\n"},
		"an empty string":                 {"<${{ input.empty }}>", "<>"},
		"two places side by side":         {"${{ input.name }}${{ input.name }}", "AnnAnn"},
		"no space":                        {"${{input.name}}", "Ann"},
		"much space":                      {"${{\n\tinput . repo\n [ \"tags\" ] [ 0 ] \n}}", "a"},
		"a large number digit by digit":   {"${{ input.n }}", "1234567890123456789"},
		"a number as it is written":       {"${{ input.price }}", "1.50"},
		"a boolean":                       {"${{ input.yes }}", "true"},
		"null":                            {"${{ input.none }}", "null"},
		"an array":                        {"${{ input.repo.tags }}", `["a",{"b":[7,"seven"]}]`},
		"an empty array":                  {"${{ input.list }}", "[]"},
		"an object":                       {"${{ input.object }}", "{}"},
		"an item":                         {"${{ input.repo.tags[1].b[1] }}", "seven"},
		"characters that JSON may escape": {"${{ input.repo.url }}", "https://x.example/?a=1&b=<2>"},
		"a name with a dash":              {"${{ input.repo.my-key }}", "k"},
		"a name with a letter of others":  {"${{ input.repo.ä }}", "umlaut"},
		"a name in quotes":                {`${{ input["repo"]["with space"] }}`, "s"},
		"a name in quotes with escapes":   {`${{ input["re\u0070o"].my-key }}`, "k"},
		"a value is never read again":     {"${{ input.evil }}", "${{ input.name }} and $${{ }}"},
		"a literal":                       {"run: echo $${{ github.sha }}", "run: echo ${{ github.sha }}"},
		"a literal after a dollar":        {"$$${{ x", "$${{ x"},
		"a literal beside a place":        {"$${{${{ input.name }}", "${{Ann"},
		"a literal that is not closed":    {"$${{", "${{"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := template.Bind(tc.text, json.RawMessage(input))
			if err != nil {
				t.Fatalf("Bind: %v", err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestTheWholeInput(t *testing.T) {
	got, err := template.Bind("${{ input }}", json.RawMessage(`{"b": 1, "a": [ ] }`))
	if want := `{"b":1,"a":[]}`; got != want || err != nil {
		t.Errorf("Bind() = %q, %v, want %q", got, err, want)
	}
}

func TestBindRefuses(t *testing.T) {
	const literal = "; write $${{ where a literal ${{ is meant"
	cases := map[string]struct{ text, want string }{
		"a name that is not there":  {"a\nbä ${{ input.repo.nme }}", `line 2, column 4: input.repo.nme has no value: input.repo has my-key, tags, url, with space, ä`},
		"a name in an empty object": {"${{ input.object.x }}", `column 1: input.object.x has no value: input.object has nothing in it`},
		"a name in an array":        {"${{ input.list.x }}", `column 1: input.list.x has no value: input.list is []`},
		"a name in items":           {"${{ input.repo.tags.x }}", `column 1: input.repo.tags.x has no value: input.repo.tags is an array, not an object`},
		"a name in a string":        {"${{ input.name.first }}", `column 1: input.name.first has no value: input.name is Ann`},
		"a name in null":            {"${{ input.none.x }}", `column 1: input.none.x has no value: input.none is null`},
		"an index past the end":     {"${{ input.repo.tags[2] }}", `column 1: input.repo.tags[2] has no value: input.repo.tags has 2 items`},
		"an index in an object":     {"${{ input.repo[0] }}", `column 1: input.repo[0] has no value: input.repo is an object, not an array`},
		"a name of another case":    {"${{ input.Name }}", `column 1: input.Name has no value: input has empty, evil, list, n, name, none, object, price, quote, repo, …`},
		"a name in quotes":          {`${{ input["a b"] }}`, `column 1: input["a b"] has no value: input has empty, evil, list, n, name, none, object, price, quote, repo, …`},

		"something else than input":  {"${{ github.sha }}", `column 1: expected a path that begins with input, as in ${{ input.name }}; found "github.sha }}"` + literal},
		"inputs":                     {"${{ inputs.x }}", `column 1: expected a path that begins with input, as in ${{ input.name }}; found "inputs.x }}"` + literal},
		"nothing inside":             {"${{ }}", `column 1: expected a path that begins with input, as in ${{ input.name }}; found "}}"` + literal},
		"not closed":                 {"x ${{ input.name", `column 3: ${{ is not closed by }}` + literal},
		"only opened":                {"${{", `column 1: ${{ is not closed by }}` + literal},
		"closed with one":            {"${{ input.name }", `column 1: ${{ is not closed by }}` + literal},
		"an expression":              {"${{ input.n + 1 }}", `column 1: expected .name, [index], ["name"] or }} after input.n; found "+ 1 }}"` + literal},
		"words after it":             {"${{ input.name and a lot of words that come\nafter it }}", `column 1: expected .name, [index], ["name"] or }} after input.name; found "and a lot of words t…"` + literal},
		"a dot at the end":           {"${{ input. }}", `column 1: expected a name after the dot; found "}}"` + literal},
		"a negative index":           {"${{ input.list[-1] }}", `column 1: expected an index or a name in double quotes after [; found "-1] }}"` + literal},
		"an enormous index":          {"${{ input.list[99999999999] }}", `column 1: expected an index or a name in double quotes after [; found "99999999999] }}"` + literal},
		"no index":                   {"${{ input.list[] }}", `column 1: expected an index or a name in double quotes after [; found "] }}"` + literal},
		"quotes that are not closed": {`${{ input["name] }}`, `column 1: ${{ is not closed by }}` + literal},
		"a bad escape":               {`${{ input["\x"] }}`, `column 1: expected a name in double quotes after [; found "\"\\x\"] }}"` + literal},
		"a bracket that is open":     {`${{ input["name" }}`, `column 1: expected ]; found "}}"` + literal},
		"single quotes":              {`${{ input['name'] }}`, `column 1: expected an index or a name in double quotes after [; found "'name'] }}"` + literal},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := template.Bind(tc.text, json.RawMessage(input))
			if got != "" || err == nil {
				t.Fatalf("Bind() = %q, %v", got, err)
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if _, ok := errors.AsType[*template.Error](err); !ok {
				t.Errorf("the error is a %T", err)
			}
		})
	}
}

func TestInputs(t *testing.T) {
	for _, none := range []string{"", " ", "{}"} {
		if got, err := template.Bind("x", json.RawMessage(none)); got != "x" || err != nil {
			t.Errorf("Bind() of the input %q = %q, %v", none, got, err)
		}
		if _, err := template.Bind("${{ input.x }}", json.RawMessage(none)); err == nil {
			t.Errorf("Bind() of the input %q found a value", none)
		}
	}
	if _, err := template.Bind("x", json.RawMessage(`{"a":`)); err == nil || err.Error() != `the input is not JSON: "{\"a\":"` {
		t.Errorf("an input that is no JSON: %v", err)
	}
}

func TestTheSizeOfATextIsBounded(t *testing.T) {
	large, _ := json.Marshal(map[string]string{"x": strings.Repeat("x", 16<<10)})
	_, err := template.Bind(strings.Repeat("${{ input.x }}", 1000), large)
	if want := "column 897: the text has more than 1048576 bytes with the value of input.x"; err == nil || err.Error() != want {
		t.Errorf("Bind() = %v, want %s", err, want)
	}
}

func TestPaths(t *testing.T) {
	got, err := template.Paths("a ${{ input }}\n$${{ no }} ${{input . b [ 3 ] [ \"c d\" ][\"e\"]}}")
	if err != nil {
		t.Fatalf("Paths: %v", err)
	}
	var told []string
	for _, p := range got {
		told = append(told, fmt.Sprintf("%d:%d %s", p.Line, p.Column, p))
	}
	if diff := cmp.Diff([]string{"1:3 input", `2:12 input.b[3]["c d"].e`}, told); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestCheck(t *testing.T) {
	const schema = `{"type":"object","properties":{
		"name":{"type":"string"},
		"repo":{"type":"object","properties":{"url":{"type":"string"}},"additionalProperties":false},
		"labels":{"type":"object","additionalProperties":{"type":"string"}},
		"open":{"type":"object","properties":{"a":{}},"additionalProperties":true},
		"free":{"type":"object"}, "any":{}, "true":true,
		"maybe":{"type":["object","null"],"properties":{"x":{"type":"integer"}}},
		"list":{"type":"array","items":{"type":"object","properties":{"x":{}}}},
		"loose":{"type":"array"}, "none":{"type":"object","properties":{}}
	}}`
	cases := map[string]string{ // the path: what is wrong with it
		"input":                 "",
		"input.name":            "",
		"input.name.x":          `column 5: input.name.x does not exist: input.name is of type "string"`,
		"input.nam":             "column 5: there is no field nam; input has any, free, labels, list, loose, maybe, name, none, open, repo, …; did you mean name?",
		"input[0]":              `column 5: input[0] does not exist: input is of type "object"`,
		"input.repo.url":        "",
		"input.repo.branch":     "column 5: there is no field branch; input.repo has url",
		"input.labels.x":        "",
		"input.labels.x.y":      `column 5: input.labels.x.y does not exist: input.labels.x is of type "string"`,
		"input.open.b":          "",
		"input.free.b.c[1]":     "",
		"input.any.b.c[1]":      "",
		"input.true.b":          "",
		"input.maybe.x":         "",
		"input.maybe[0]":        `column 5: input.maybe[0] does not exist: input.maybe is of type ["object","null"]`,
		"input.list[7].x":       "",
		"input.list[7].y":       "column 5: there is no field y; input.list[7] has x; did you mean x?",
		"input.list.x":          `column 5: input.list.x does not exist: input.list is of type "array"`,
		"input.loose[0].a":      "",
		"input.none.a":          "column 5: there is no field a; input.none has nothing in it",
		`input["repo"]["nope"]`: "column 5: there is no field nope; input.repo has url",
	}
	for path, want := range cases {
		t.Run(path, func(t *testing.T) {
			got := ""
			if err := template.Check("See ${{ "+path+" }}.", json.RawMessage(schema)); err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	for _, nothing := range []string{"", "{}", "true", "not JSON"} {
		if err := template.Check("${{ input.a.b[0] }}", json.RawMessage(nothing)); err != nil {
			t.Errorf("the schema %q: %v", nothing, err)
		}
	}
	if err := template.Check("${{ input.name", json.RawMessage(schema)); err == nil {
		t.Error("a path that is not closed passed")
	}
}

// Whatever the text and the input: no panic; what Bind takes Paths takes too;
// and a text made of what was bound, with its marks escaped, is bound to itself.
func FuzzBind(f *testing.F) {
	for _, text := range []string{"${{ input.name }}", `${{ input["repo"].tags[1] }}`, "$${{", "$$${{ input", "a\n${{input.x}}\n", "${{ input[\"\\u00e4\"] }}"} {
		f.Add(text, input)
	}
	f.Fuzz(func(t *testing.T, text, in string) {
		bound, err := template.Bind(text, json.RawMessage(in))
		paths, pathErr := template.Paths(text)
		if (err == nil) != (pathErr == nil) && err == nil {
			t.Fatalf("Bind takes %q, Paths says %v", text, pathErr)
		}
		for _, p := range paths {
			again, err := template.Paths("${{ " + p.String() + " }}")
			if err != nil || again[0].String() != p.String() {
				t.Fatalf("the path %s is read as %v, %v", p, again, err)
			}
		}
		_ = template.Check(text, json.RawMessage(in))
		if err != nil {
			return
		}
		escaped := strings.ReplaceAll(bound, "${{", "$${{")
		if twice, err := template.Bind(escaped, nil); err != nil || twice != bound {
			t.Fatalf("%q escaped is bound to %q, %v", bound, twice, err)
		}
	})
}

// marks are what texts are made of that look like something to bind.
var marks = []string{"${{", "$", "{", "{{", "}}", " ", "input.name", "$${{", "\n", "é", `"`, "${"}

func TestLiteralIsNotRead(t *testing.T) {
	for n := range 12 * 12 * 12 * 12 {
		text := marks[n%12] + marks[n/12%12] + marks[n/144%12] + marks[n/1728]
		literal := template.Literal(text)
		if got, err := template.Bind(literal, json.RawMessage(input)); err != nil || got != text {
			t.Fatalf("%q is %q and then %q, %v", text, literal, got, err)
		}
		if paths, err := template.Paths(literal); err != nil || len(paths) > 0 {
			t.Fatalf("%q has places: %v, %v", text, paths, err)
		}
	}
}

func FuzzLiteral(f *testing.F) {
	for _, seed := range []string{"", "${{ input.name }}", "$${{", "$$${{ input.name }}", "${{${{", "$${${{{", "{\"name\": \"${{ input.name }}\"}"} {
		f.Add(seed, input)
	}
	f.Fuzz(func(t *testing.T, text, input string) {
		if !json.Valid([]byte(input)) {
			input = "{}"
		}
		if got, err := template.Bind(template.Literal(text), json.RawMessage(input)); err != nil || got != text {
			t.Errorf("got %q, %v, want %q", got, err, text)
		}
	})
}
