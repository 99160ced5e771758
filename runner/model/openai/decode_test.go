package openai

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestChunksAreDecoded(t *testing.T) {
	zero := 0
	cases := map[string]struct {
		data string
		want chunk
	}{
		"a word":                         {`{"choices":[{"index":0,"delta":{"content":"Hi"}}]}`, chunk{Choices: []choice{{Delta: saying{Content: content{text: "Hi"}}}}}},
		"escapes, in a key too":          {"{\"choices\":[{\"delta\":{\"\\u0063ontent\":\"\\u0048i \\ud83d\\ude00\\n\"}}]}", chunk{Choices: []choice{{Delta: saying{Content: content{text: "Hi 😀\n"}}}}}},
		"space wherever it may be":       {" { \"choices\" : [ { \"delta\" : { \"content\" : \"Hi\" } , \"index\" : 1 } ] } \t\r\n", chunk{Choices: []choice{{Index: 1, Delta: saying{Content: content{text: "Hi"}}}}}},
		"what nobody asks for is passed": {`{"id":"x","n":-1.5E+7,"t":true,"f":false,"o":{"choices":[{}]},"choices":[]}`, chunk{Choices: []choice{}}},
		"a wrong type counts as absent":  {`{"choices":{},"usage":"none","error":null}`, chunk{Error: json.RawMessage("null")}},
		"wrong types inside, too":        {`{"choices":[{"index":"1","delta":[],"message":7,"finish_reason":{},"usage":[]},3,null]}`, chunk{Choices: []choice{{}, {}, {}}}},
		"no object at all":               {`[{"choices":[]}]`, chunk{}},
		"a piece of a call": {
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{"},"extra_content":null}]},"finish_reason":"tool_calls"}]}`,
			chunk{Choices: []choice{{
				Delta:        saying{ToolCalls: []callPiece{{Index: &zero, ID: "a", Function: functionPiece{Name: "x", Arguments: json.RawMessage(`"{"`)}}}},
				FinishReason: "tool_calls",
			}}},
		},
		"an index that is no number is none": {`{"choices":[{"delta":{"tool_calls":[{"index":"0"}],"function_call":null}}]}`, chunk{Choices: []choice{{Delta: saying{ToolCalls: []callPiece{{}}}}}}},
		"the cost":                           {`{"usage":{"prompt_tokens":3,"completion_tokens":null}}`, chunk{Usage: &usage{Prompt: 3}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got chunk
			err := got.decode([]byte(tc.data))
			if diff := gocmp.Diff(tc.want, got, alike); diff != "" || err != nil {
				t.Errorf("error %v, -want +got:\n%s", err, diff)
			}
		})
	}
}

// alike compares chunks: an empty list is none, and so is a null that is kept.
var alike = gocmp.Options{
	gocmp.AllowUnexported(content{}),
	gocmp.Comparer(func(a, b json.RawMessage) bool { return bytes.Equal(orNone(a), orNone(b)) }),
	gocmp.FilterPath(func(p gocmp.Path) bool { return p.Last().Type() != reflect.TypeFor[json.RawMessage]() }, cmpopts.EquateEmpty()),
}

func orNone(raw []byte) []byte { return bytes.TrimPrefix(raw, []byte("null")) }

func TestWhatIsNoJSONIsAnError(t *testing.T) {
	for _, data := range []string{
		"", " ", "{", "}", `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `{a:1}`, `[1,]`, `[`, `[1 2]`, `{"a":1 "b":2}`, `"`, "\"\n\"", `"\x"`, `"\u12g4"`, `"\u12`,
		"01", "-", "1.", ".5", "1e", "1e+", "+1", "tru", "nul", "True", "NaN", "{} {}", "{}x", `{"choices":[{"delta":{"content":"Hi"}}]`,
	} {
		var c chunk
		if err := c.decode([]byte(data)); err == nil {
			t.Errorf("%q is decoded as %+v", data, c)
		}
	}
}

// A chunk says nothing of the one that was decoded before it into the same
// memory.
func TestAChunkForgetsTheOneBefore(t *testing.T) {
	var got chunk
	for _, data := range []string{
		`{"choices":[{"index":2,"delta":{"content":"Hi","tool_calls":[{"index":0,"id":"a","function":{"name":"x"}},{"id":"b"}]},"finish_reason":"stop"},{"index":1}],"usage":{},"error":7}`,
		`{"choices":[{"delta":{"tool_calls":[{}]}}]}`,
		`{"choices":[{}]}`,
	} {
		var fresh chunk
		if err := fresh.decode([]byte(data)); err != nil {
			t.Fatal(err)
		}
		_ = got.decode([]byte(data))
		if diff := gocmp.Diff(fresh, got, alike); diff != "" {
			t.Errorf("%s: -fresh +again:\n%s", data, diff)
		}
	}
}

// FuzzChunk holds the decoder to the standard one: what that refuses is refused,
// and what it understands is understood in the same way.
func FuzzChunk(f *testing.F) {
	for _, seed := range []string{
		`{"id":"x","choices":[{"index":0,"delta":{"role":"assistant","content":"Hi"},"logprobs":null,"finish_reason":null}],"usage":null}`,
		`{"choices":[{"delta":{"content":[{"type":"text","text":"Hi"},{"thinking":[{"text":"Hm"}]}],"refusal":"no","reasoning":"r","reasoning_content":"c"}}]}`,
		`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"x","arguments":"{\"a\":1}"},"extra_content":{"g":1}}]}}]}`,
		`{"choices":[{"message":{"content":null,"function_call":{"name":"x","arguments":{}},"reasoning_details":[{"a":1},2],"extra_content":{}}}]}`,
		`{"choices":[],"usage":{"prompt_tokens":1,"prompt_tokens_details":{"cached_tokens":1},"cost":0.5}}`,
		`{"error":{"message":"x","code":500}}`, "[1,-0.5e7,\"\\u00e4\\\\\",true,false,null]", "{\"a\":{\"b\":[[],{}]}}", "\"\xff\"", " 1 ", "{\"choices\":[{\"index\":1.0}]}",
		strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000), strings.Repeat("[", 10_001) + strings.Repeat("]", 10_001),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if valid(data) != json.Valid(data) {
			t.Fatalf("valid: %t, want %t", valid(data), json.Valid(data))
		}
		var got, want chunk
		if err := got.decode(data); (err == nil) != json.Valid(data) {
			t.Fatalf("error %v", err)
		}
		if json.Unmarshal(data, &want) != nil || odd(data) {
			return // of another type, which is told from absence nowhere
		}
		if diff := gocmp.Diff(want, got, alike); diff != "" {
			t.Errorf("-standard +ours:\n%s", diff)
		}
	})
}

// odd reports whether an object has a key twice, or one in capitals: the
// standard decoder merges the values of both.
func odd(data []byte) bool {
	var keys []string
	for key, value := range members(data) {
		folded := strings.ToUpper(strings.ToLower(string(key)))
		if string(key) != strings.ToLower(string(key)) || slices.Contains(keys, folded) || odd(value) || !isASCII(key) {
			return true
		}
		keys = append(keys, folded)
	}
	for value := range elements(data) {
		if odd(value) {
			return true
		}
	}
	return false
}

func isASCII(s []byte) bool { return bytes.IndexFunc(s, func(r rune) bool { return r > 0x7f }) < 0 }
