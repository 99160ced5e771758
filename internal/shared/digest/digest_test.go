package digest_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/internal/shared/digest"
)

func TestCanonical(t *testing.T) {
	cases := map[string]struct{ args, want string }{
		"nothing":                      {"", `{}`},
		"space":                        {" \n", `{}`},
		"an empty object":              {" { } ", `{}`},
		"members in order":             {`{"b": 1, "a": {"d": 2, "c": 3}}`, `{"a":{"c":3,"d":2},"b":1}`},
		"members by their bytes":       {`{"ä":1,"z":2,"Z":3,"":4}`, `{"":4,"Z":3,"z":2,"ä":1}`},
		"names with escapes":           {`{"\u0062":1,"a":2}`, `{"a":2,"b":1}`},
		"arrays keep their order":      {`[ 3, 1 ,2, [ ], [1] ]`, `[3,1,2,[],[1]]`},
		"numbers digit by digit":       {`[1, 1.0, 1e0, 10E+2, -0, 12345678901234567890.10]`, `[1,1.0,1e0,10E+2,-0,12345678901234567890.10]`},
		"constants":                    {`[true, false, null]`, `[true,false,null]`},
		"needless escapes":             {`"\u0041\/\u00e4\u003c\u2028"`, "\"A/ä<\u2028\""},
		"needed escapes":               {`"\"\\\n\u0001\u000A\u007f"`, "\"\\\"\\\\\\u000a\\u0001\\u000a\x7f\""},
		"a pair of surrogates":         {`"\ud83d\ude00 \uFFFD"`, "\"😀 \uFFFD\""},
		"a replacement, not escaped":   {"\"\uFFFD\\\\ufffd\"", "\"\uFFFD\\\\ufffd\""},
		"space within strings":         {`" a  b "`, `" a  b "`},
		"brackets and commas in a key": {`{"},{\"":[1],"a":"}"}`, `{"a":"}","},{\"":[1]}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := digest.Canonical(json.RawMessage(tc.args))
			if err != nil {
				t.Fatalf("Canonical: %v", err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestCanonicalRefuses(t *testing.T) {
	cases := map[string]struct{ args, want string }{
		"what is not JSON":                {`{"a":`, `the arguments are not JSON`},
		"two values":                      {`{} {}`, `the arguments are not JSON`},
		"a name twice":                    {`{"a":1,"b":{"c":1,"c":1}}`, `the arguments have "c" twice in one object; send it once`},
		"a name twice, escaped":           {`{"a":1,"\u0061":1}`, `the arguments have "a" twice in one object; send it once`},
		"half of a pair":                  {`{"a":"x\ud83d"}`, `the arguments have half of a surrogate pair in "x�"; send whole characters`},
		"the other half":                  {`["\ude00\ud83d"]`, `the arguments have half of a surrogate pair in "��"; send whole characters`},
		"half of a pair by a replacement": {`["\ufffd\ud83d"]`, `the arguments have half of a surrogate pair in "��"; send whole characters`},
		"bytes that are no text":          {"\"\xff\"", `the arguments are not valid UTF-8`},
		"too deep":                        {strings.Repeat("[", 502) + strings.Repeat("]", 502), `the arguments are nested more than 500 deep`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := digest.Canonical(json.RawMessage(tc.args))
			if err == nil || err.Error() != tc.want {
				t.Errorf("Canonical() = %s, %v, want %s", got, err, tc.want)
			}
		})
	}
}

func TestCallsOfOneMeaning(t *testing.T) {
	const golden = "0689b0f5303350ade805110ed521569036be9a25aa82561e2eba25a9bfc77689" // it must never change: Decisions carry it
	same := []string{`{"command":"rm -rf x","timeout":5}`, `{ "timeout" : 5,` + "\n" + `"command":"rm -rf x" }`, `{"comm\u0061nd":"rm \u002drf x","timeout":5}`}
	for _, args := range same[1:] {
		if digest.Call("shell", json.RawMessage(args)) != digest.Call("shell", json.RawMessage(same[0])) {
			t.Errorf("%s has another name than %s", args, same[0])
		}
	}
	if got := digest.Call("shell", json.RawMessage(same[0])); got != golden {
		t.Errorf("Call() = %s, want %s", got, golden)
	}
}

func TestOtherCallsHaveOtherNames(t *testing.T) {
	calls := [][2]string{
		{"shell", `{"a":"b"}`},
		{"Shell", `{"a":"b"}`},
		{"shel", `l{"a":"b"}`},
		{"shell", `{"A":"b"}`},
		{"shell", `{"a":"b "}`},
		{"shell", `{"a":["b"]}`},
		{"shell", `{"a":"b","c":null}`},
		{"shell", `{"a":1}`},
		{"shell", `{"a":1.0}`},
		{"shell", `{"a":10e-1}`},
		{"shell", `{"a":"1"}`},
		{"shell", `{"a":[1,2]}`},
		{"shell", `{"a":[2,1]}`},
		{"shell", `{"a":{"b":1}}`},
		{"shell", `{"a":"\ud83d"}`},
		{"shell", `{"a":"\ufffd"}`},
		{"shell", "{\"a\":\"\xff\"}"},
		{"shell", `{"a":1,"a":2}`},
		{"shell", `{"a":2,"a":1}`},
		{"shell", `{"a":2}`},
		{"shell", `{`},
		{"shell", `{}`},
		{"", `{}`},
	}
	seen := map[string][2]string{}
	for _, c := range calls {
		name := digest.Call(c[0], json.RawMessage(c[1]))
		if other, ok := seen[name]; ok {
			t.Errorf("%q and %q have one name", c, other)
		}
		seen[name] = c
	}
	if digest.Call("x", nil) != digest.Call("x", json.RawMessage(`{}`)) {
		t.Error("no arguments are not the same as {}")
	}
}

// Whatever the arguments: the canonical form means the same, is its own
// canonical form, and survives being put into JSON by others.
func FuzzCanonical(f *testing.F) {
	for _, args := range []string{`{"b":1,"a":[1.0,"x\u00e4\n",null]}`, `{"a":1,"a":2}`, `"\ud83d\ude00"`, `"\ud83d"`, "\"\xff\"", `[[[{}]]]`, ``, ` `, `-0`, `"\\ud800"`} {
		f.Add(args)
	}
	f.Fuzz(func(t *testing.T, args string) {
		got, err := digest.Canonical(json.RawMessage(args))
		if digest.Call("x", json.RawMessage(args)) == digest.Call("y", json.RawMessage(args)) {
			t.Fatal("two tools have one name")
		}
		if err != nil || strings.TrimSpace(args) == "" {
			return
		}
		again, err := digest.Canonical(got)
		if err != nil || string(again) != string(got) {
			t.Fatalf("%q becomes %q, then %q, %v", args, got, again, err)
		}
		if !reflect.DeepEqual(decoded(t, args), decoded(t, string(got))) {
			t.Fatalf("%q and %q mean different things", args, got)
		}
		passed, err := json.Marshal(json.RawMessage(args)) // as a journal does it
		if err != nil {
			t.Fatal(err)
		}
		if digest.Call("x", passed) != digest.Call("x", json.RawMessage(args)) {
			t.Fatalf("%q has another name as %q", args, passed)
		}
	})
}

func decoded(t *testing.T, s string) any {
	t.Helper()
	var v any
	dec := json.NewDecoder(strings.NewReader(s))
	dec.UseNumber()
	if err := dec.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}
