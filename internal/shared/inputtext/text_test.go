package inputtext_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/internal/shared/inputtext"
)

// of is the schema of values. mail-address, note, labels.* and free.* may be absent.
const of = `{"type":"object","required":["name","empty","n","price","yes","repo","list","object","evil","quote"],"properties":{
	"name":{"type":"string"},"empty":{"type":"string"},"n":{"type":"integer"},"price":{"type":"number"},"yes":{"type":"boolean"},
	"repo":{"type":"object","required":["url","tags","my-key"],"properties":{
		"url":{"type":"string"},"tags":{"type":"array","items":{}},"my-key":{"type":"string"},"with space":{"type":"string"},"ä":{"type":"string"},"a-1":{"type":"integer"}}},
	"list":{"type":"array","items":{"type":"string"}},"object":{"type":"object"},"evil":{"type":"string"},"quote":{"type":"string"},
	"note":{"type":"string"},"files":{"type":"array","items":{"type":"object","required":["path"],"properties":{"path":{"type":"string"},"lines":{"type":"integer"}}}},
	"kind":{"type":"string","default":"plain"},"labels":{"type":"object","additionalProperties":{"type":"string"}},
	"open":{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":true},"mail-address":{"type":"string"}}}`

const values = `{
	"name": "Ann", "empty": "", "n": 1234567890123456789, "price": 1.50, "yes": true, "kind": "plain",
	"repo": {"url": "https://x.example/?a=1&b=<2>", "tags": ["a", {"b": [ 7, "seven" ]}, null], "my-key": "k", "with space": "s", "ä": "umlaut", "a-1": 4},
	"list": ["B", "a"], "object": {}, "open": {"a": "x", "b": "y"},
	"evil": "${{ input.name }} and $${{ }}", "quote": "say \"hi\"\n"
}`

func TestBind(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"no expression":                   {"Hello, {{name}} ${name} $ {{ }}", "Hello, {{name}} ${name} $ {{ }}"},
		"nothing":                         {"", ""},
		"a string as it is":               {"Hello, ${{ input.name }}!", "Hello, Ann!"},
		"a string of more than letters":   {"${{ input.quote }}", "say \"hi\"\n"},
		"an empty string":                 {"<${{ input.empty }}>", "<>"},
		"two side by side":                {"${{ input.name }}${{ input.name }}", "AnnAnn"},
		"no space":                        {"${{input.name}}", "Ann"},
		"much space":                      {"${{\n\tinput . repo\n [ \"tags\" ] [ 0 ] \n}}", "a"},
		"a large number digit by digit":   {"${{ input.n }}", "1234567890123456789"},
		"a number as it is written":       {"${{ input.price }}", "1.50"},
		"a boolean":                       {"${{ input.yes }}", "true"},
		"null":                            {"${{ input.repo.tags[2] }}", "null"},
		"an array":                        {"${{ input.repo.tags }}", `["a",{"b":[7,"seven"]},null]`},
		"an object":                       {"${{ input.object }}", "{}"},
		"an item":                         {"${{ input.repo.tags[1].b[1] }}", "seven"},
		"characters that JSON may escape": {"${{ input.repo.url }}", "https://x.example/?a=1&b=<2>"},
		"a name with a dash":              {"${{ input.repo.my-key }}", "k"},
		"a name with a dash and a digit":  {"${{ input.repo.a-1 }}", "4"},
		"a name with a letter of others":  {"${{ input.repo.ä }}", "umlaut"},
		"a name in quotes":                {`${{ input["repo"]["with space"] }}`, "s"},
		"a name in quotes with escapes":   {`${{ input["re\u0070o"].my-key }}`, "k"},
		"a field that no schema names":    {"${{ input.open.b }}", "y"},
		"a default":                       {"${{ input.kind }}", "plain"},
		"a value is never read again":     {"${{ input.evil }} ${{ input.evil.trim() }}", "${{ input.name }} and $${{ }} ${{ input.name }} and $${{ }}"},
		"a literal":                       {"run: echo $${{ github.sha }}", "run: echo ${{ github.sha }}"},
		"a literal beside an expression":  {"$${{${{ input.name }}", "${{Ann"},

		"a function":             {"${{ input.name.lowerAscii() }}", "ann"},
		"a joined list":          {"${{ input.list.join(', ') }}", "B, a"},
		"a sorted list":          {"${{ input.list.map(x, x.lowerAscii()).sort() }}", `["a","b"]`},
		"a subtraction":          {"${{ input.n-1 }}", "1234567890123456788"},
		"a choice":               {"${{ input.yes ? 'on' : 'off' }}", "on"},
		"a default of its own":   {"${{ input.?note.orValue('none') }}", "none"},
		"a test":                 {"${{ has(input.note) ? input.note : '-' }}", "-"},
		"an object of its own":   {`${{ {"a": input.yes} }}`, `{"a":true}`},
		"a name in backticks":    {"${{ input.repo.`my-key` }}", "k"},
		"a function with a }}":   {"${{ '}}' + input.name }}", "}}Ann"},
		"a computed text":        {"${{ '${' + '{ input.name }' + '}' }}", "${{ input.name }}"},
		"a value with a default": {"${{ input.kind + '!' }}", "plain!"},
		"an expression of none":  {"${{ 1 + 1 }}", "2"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := inputtext.Check(tc.text, json.RawMessage(of)); err != nil {
				t.Errorf("Check: %v", err)
			}
			got, err := inputtext.Bind(tc.text, json.RawMessage(of), json.RawMessage(values))
			if got != tc.want || err != nil {
				t.Errorf("Bind() = %q, %v, want %q", got, err, tc.want)
			}
		})
	}
}

// A fault is the same when a text is checked and when it is used.
func TestRefused(t *testing.T) {
	const literal = "; write $${{ where a literal ${{ is meant"
	for name, tc := range map[string]struct{ text, want string }{
		"a field that is not there":     {"a\nbä ${{ input.repo.urll }}", `line 2, column 19: there is no field urll; input.repo has a-1, my-key, tags, url, with space, ä; did you mean url?`},
		"one in quotes":                 {`${{  input["repo"]["no pe"] }}`, `column 6: there is no field no pe; input.repo has a-1, my-key, tags, url, with space, ä`},
		"one in something absent":       {"${{ input.files[0].size() }}", "column 5: input.files[0] may be absent: write input.?files[?0].?path.orValue('')"},
		"a field of a string":           {"${{ input.name.first }}", `column 5: input.name is a string and has no fields`},
		"an index of an object":         {"${{ input.repo[0] }}", `column 5: input.repo is an object: write input.repo.name for its field name`},
		"a value that may be absent":    {"a ${{ input.note.size() }}", "column 7: input.note may be absent: write input.?note.orValue('')"},
		"an optional value":             {"a ${{ input.?note }}", "column 7: input.note may be absent: write input.?note.orValue('')"},
		"another variable":              {"${{ github.sha }}", `column 5: there is no github; an expression here reads input; strings need quotes, as in 'github'` + literal},
		"a variable of a Workflow":      {"${{ item }}", `column 5: there is no item; an expression here reads input; item is read in a node with forEach only` + literal},
		"a function of Workflows":       {"${{ quantity(input.name) }}", `column 13: there is no function quantity; it is a function of Kubernetes, which only Workflows have`},
		"nothing inside":                {"${{ }}", `column 4: the expression is empty; write one, for example true` + literal},
		"not closed":                    {"x ${{ input.name", `column 3: ${{ is not closed by }}` + literal},
		"a mistake in an expression":    {"${{ input.n + }}", "column 15: mismatched input the end; the expression is incomplete"},
		"text and a number":             {"${{ input.name + 1 }}", "column 5: + does not go between a string and an int; write string(…) around the other value"},
		"too many expressions":          {strings.Repeat("${{ 1 + 1 }}", 257), "column 3073: a text has at most 256 expressions"},
		"an expression that is too big": {"${{ input.n + " + strings.Repeat("1", 4096) + " }}", "column 4: the expression is longer than 4096 characters; make it shorter"},
	} {
		t.Run(name, func(t *testing.T) {
			for what, err := range map[string]error{
				"Check": inputtext.Check(tc.text, json.RawMessage(of)),
				"Bind":  second(inputtext.Bind(tc.text, json.RawMessage(of), json.RawMessage(values))),
			} {
				if err == nil || err.Error() != tc.want {
					t.Errorf("%s() = %v\nwant %s", what, err, tc.want)
				}
			}
		})
	}
}

func second[T any](_ T, err error) error { return err }

// A text that is accepted may fail with some values.
func TestFails(t *testing.T) {
	for name, tc := range map[string]struct{ text, want string }{
		"a value that is absent":      {"See ${{ input.note }}.", "column 9: input.note has no value: write input.?note.orValue('')"},
		"one in something absent":     {"${{ input.files[0].lines }}", "column 5: input.files[0].lines has no value: write input.?files[?0].?lines.orValue(0)"},
		"an item past the end":        {"${{ input.list[2] }}", "column 5: input.list[2] has no value: write input.list[?2].orValue('')"},
		"a label":                     {"${{ input.labels.x }}", "column 5: input.labels.x has no value: write input.?labels.?x.orValue('')"},
		"a field that nothing names":  {"${{ input.open.c }}", "column 5: input.open.c has no value: write input.?open.?c.orValue('')"},
		"a name with a dash":          {"${{ input.mail-address }}", "column 5: input.`mail-address` has no value: write input.?`mail-address`.orValue('')"},
		"a division by zero":          {"a ${{ 1 / (input.n - input.n) }}", `column 7 of "1 / (input.n - input.n)": division by zero`},
		"an item of a computed list":  {"${{ input.list.sort()[5] }}", `column 5 of "input.list.sort()[5]": the list has no item 5`},
		"more work than is allowed":   {"${{ lists.range(900).map(a, lists.range(900).map(b, 1)).size() }}", `it does more than an expression may; make it simpler, or read less`},
		"a value that is not in JSON": {"${{ bytes(input.name) == b'' ? 1.0 : 1.0 / 0.0 }}", `JSON cannot represent the number +Inf`},
	} {
		t.Run(name, func(t *testing.T) {
			if err := inputtext.Check(tc.text, json.RawMessage(of)); err != nil {
				t.Errorf("Check: %v", err)
			}
			got, err := inputtext.Bind(tc.text, json.RawMessage(of), json.RawMessage(values))
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Bind() = %q, %v\nwant %s", got, err, tc.want)
			}
		})
	}
}

// What to write for an absent value compiles, and gives the default.
func TestTheHintForAnAbsentValueWorks(t *testing.T) {
	for _, path := range []string{"input.note", "input.files[0].lines", "input.list[2]", "input.labels.x", "input.mail-address", "input.repo.tags[7].b"} {
		_, err := inputtext.Bind("${{ "+path+" }}", json.RawMessage(of), json.RawMessage(values))
		if err == nil {
			t.Fatalf("%s has a value", path)
		}
		_, hint, _ := strings.Cut(err.Error(), "write ")
		if got, err := inputtext.Bind("<${{ "+hint+" }}>", json.RawMessage(of), json.RawMessage(values)); err != nil || got != "<>" && got != "<0>" {
			t.Errorf("%s is %q, %v", hint, got, err)
		}
	}
}

func TestAnyInput(t *testing.T) {
	for text, want := range map[string]string{"${{ input.a.b[0] }}": "1", "${{ input }}": `{"a":{"b":[1,2]}}`, "${{ input.a.b.map(x, x * 2) }}": "[2,4]", "${{ input.?c.orValue('-') }}": "-"} {
		if got, err := inputtext.Bind(text, nil, json.RawMessage(`{"a": {"b": [1, 2]}}`)); got != want || err != nil {
			t.Errorf("%s is %q, %v, want %q", text, got, err, want)
		}
	}
	for _, none := range []string{"", " ", "{}"} {
		if got, err := inputtext.Bind("x", nil, json.RawMessage(none)); got != "x" || err != nil {
			t.Errorf("Bind() of the input %q = %q, %v", none, got, err)
		}
		if _, err := inputtext.Bind("${{ input.x }}", nil, json.RawMessage(none)); err == nil || err.Error() != "column 5: input.x has no value: write input.?x.orValue('')" {
			t.Errorf("Bind() of the input %q: %v", none, err)
		}
	}
	if _, err := inputtext.Bind("x", nil, json.RawMessage(`{"a":`)); err == nil || err.Error() != `the input is not JSON: "{\"a\":"` {
		t.Errorf("an input that is no JSON: %v", err)
	}
}

// A schema that declares no properties has none, as an Agent's that lists no fields.
func TestAnInputWithoutProperties(t *testing.T) {
	for _, empty := range []string{`{"type":"object","properties":{}}`, `{"type":"object","additionalProperties":false}`} {
		err := inputtext.Check("${{ input.x }}", json.RawMessage(empty))
		if err == nil || err.Error() != "column 11: there is no field x; input has no fields" {
			t.Errorf("%s: %v", empty, err)
		}
	}
	if err := inputtext.Check("${{ input.x }}", json.RawMessage(`{"type":"object"}`)); err != nil {
		t.Error(err)
	}
}

func TestTheSizeOfATextIsBounded(t *testing.T) {
	large, _ := json.Marshal(map[string]string{"x": strings.Repeat("x", 16<<10)})
	_, err := inputtext.Bind(strings.Repeat("${{ input.x }}", 1000), nil, large)
	if want := `the text has more than 1048576 bytes; 16384 of them are the value of "input.x"`; err == nil || err.Error() != want {
		t.Errorf("Bind() = %v, want %s", err, want)
	}
}

func TestAbsence(t *testing.T) {
	for text, want := range map[string][3]string{ // of MayLack, MustHave and Omits: the error, or what is found
		"${{ input.name }}":                       {"Ann", "Ann", `"Ann" true`},
		"${{ input.note }}":                       {"input.note has no value", "input.note may be absent", ` false`},
		"a${{ input.note }}":                      {"input.note has no value", "input.note may be absent", "input.note may be absent"},
		"${{ input.?note }}":                      {"input.note may be absent", "input.note may be absent", ` false`},
		"${{ input.?kind }}":                      {"input.kind may be absent", "input.kind may be absent", `"plain" true`},
		"${{ input.files }}":                      {"input.files has no value", "input.files may be absent", ` false`},
		"${{ input.repo.tags[9] }}":               {"has no value", "has no value", ` false`},
		"${{ input.?note.optMap(n, n.trim()) }}":  {"this may be absent", "this may be absent", ` false`},
		"${{ input.note.trim() }}":                {"input.note may be absent", "input.note may be absent", "input.note may be absent"},
		"${{ input.?note }}${{ input.?note }}":    {"input.note may be absent", "input.note may be absent", "input.note may be absent"},
		"${{ optional.ofNonZeroValue(input.n) }}": {"this may be absent", "this may be absent", `1234567890123456789 true`},
		"${{ null }}":                             {"null", "null", `null true`},
	} {
		for i, a := range []inputtext.Absence{inputtext.MayLack, inputtext.MustHave, inputtext.Omits} {
			if got := bind(t, text, a); !strings.Contains(got, want[i]) {
				t.Errorf("%s with %d is %s, want %s", text, a, got, want[i])
			}
		}
	}
}

// bind returns the value of a text as it is used, or the error.
func bind(t *testing.T, text string, a inputtext.Absence) string {
	t.Helper()
	tmpl, err := inputtext.Of(json.RawMessage(of)).Parse(text, a)
	if err == nil {
		err = tmpl.Compile()
	}
	if err != nil {
		return err.Error()
	}
	in, err := inputtext.NewValues(json.RawMessage(values))
	if err != nil {
		t.Fatal(err)
	}
	if alone := tmpl.Alone(); alone != nil {
		raw, found, err := alone.Find(in)
		if err != nil {
			return err.Error()
		}
		return string(raw) + map[bool]string{true: " true", false: " false"}[found]
	}
	got, err := tmpl.Bind(in, func(raw json.RawMessage) (string, error) { return strings.Trim(string(raw), `"`), nil })
	if err != nil {
		return err.Error()
	}
	return got
}

func TestParts(t *testing.T) {
	tmpl, err := inputtext.Of(json.RawMessage(of)).Parse("a ${{ input.n }}b$${{ ${{ input.n + 1 }}", inputtext.MustHave)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, part := range tmpl.Parts {
		got = append(got, part.Words)
		if part.Value != nil {
			got = append(got, part.Value.String())
		}
	}
	if diff := cmp.Diff([]string{"a ", "input.n", "b${{ ", "input.n + 1", ""}, got); diff != "" || tmpl.Expressions() != 1 {
		t.Errorf("%d expressions besides paths, want 1; -want +got:\n%s", tmpl.Expressions(), diff)
	}
}
