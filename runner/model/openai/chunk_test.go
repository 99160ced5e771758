package openai

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/model/httpapi"
)

func TestChunksAreDecoded(t *testing.T) {
	cases := map[string]struct {
		data string
		want chunk
	}{
		"a word":                        {`{"choices":[{"index":0,"delta":{"content":"Hi"}}]}`, chunk{Choices: [maxChoices]choice{{Delta: delta{Content: content{text: "Hi"}}}}}},
		"escapes, in a key too":         {"{\"choices\":[{\"delta\":{\"\\u0063ontent\":\"\\u0048i \\ud83d\\ude00\\n\"}}]}", chunk{Choices: [maxChoices]choice{{Delta: delta{Content: content{text: "Hi 😀\n"}}}}}},
		"space wherever it may be":      {" { \"choices\" : [ { \"delta\" : { \"content\" : \"Hi\" } , \"index\" : 1 } ] } \t\r\n", chunk{Choices: [maxChoices]choice{{Index: 1, Delta: delta{Content: content{text: "Hi"}}}}}},
		"other fields are skipped":      {`{"id":"x","n":-1.5E+7,"t":true,"f":false,"o":{"choices":[{}]},"choices":[]}`, chunk{}},
		"a wrong type counts as absent": {`{"choices":{},"usage":"none","error":null}`, chunk{Usage: &usage{}, Error: json.RawMessage("null")}},
		"wrong types inside, too":       {`{"choices":[{"index":"1","delta":[],"message":7,"finish_reason":{},"usage":[]},3,null]}`, chunk{Choices: [maxChoices]choice{{Usage: &usage{}}}}},
		"no object at all":              {`[{"choices":[]}]`, chunk{}},
		"a piece of a call": {
			`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"x","arguments":"{"},"extra_content":null}]},"finish_reason":"tool_calls"}]}`,
			chunk{Choices: [maxChoices]choice{{
				Delta:        delta{ToolCalls: []callDelta{{Index: "0", ID: "a", Function: functionDelta{Name: "x", Arguments: json.RawMessage(`"{"`)}}}},
				FinishReason: "tool_calls",
			}}},
		},
		"an index that is no number is none": {`{"choices":[{"delta":{"tool_calls":[{"index":"x"}],"function_call":null}}]}`, chunk{Choices: [maxChoices]choice{{Delta: delta{ToolCalls: []callDelta{{}}}}}}},
		"the cost":                           {`{"usage":{"prompt_tokens":3,"completion_tokens":null}}`, chunk{Usage: &usage{Prompt: 3}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got chunk
			err := httpapi.Unmarshal([]byte(tc.data), &got)
			if diff := gocmp.Diff(tc.want, got, gocmp.AllowUnexported(content{})); diff != "" || err != nil {
				t.Errorf("error %v, -want +got:\n%s", err, diff)
			}
		})
	}
}

func TestListsAreBounded(t *testing.T) {
	items := func(n int) []byte { return []byte("[" + strings.Repeat("1,", n-1) + "1]") }
	var l list[int]
	if err := json.Unmarshal(items(maxItems), &l); err != nil || len(l) != maxItems {
		t.Errorf("%d items, %v", len(l), err)
	}
	if err := json.Unmarshal(items(maxItems+1), new(list[int])); !errors.Is(err, errTooMany) {
		t.Errorf("got %v", err)
	}
}
