package args

import (
	"bytes"
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
