package openai_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/model/wiretest"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// delta is a line with one delta, stop and calls lines that finish.
func delta(json string) string { return `data: {"choices":[{"index":0,"delta":` + json + `}]}` }

// tool is a line with one piece of a call.
func tool(json string) string { return delta(`{"tool_calls":[` + json + `]}`) }

const (
	stop  = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	calls = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`
	done  = "data: [DONE]\n"
)

// weather is the call that the awkward streams below all mean.
var weather = []model.Call{{Name: "weather", Args: `{"city":"Bonn"}`}}

// What servers write, seen in the wild, and what they mean.
func TestAwkwardStreams(t *testing.T) {
	cases := map[string]struct {
		lines []string
		text  string
		calls []model.Call
	}{
		"lines end with CRLF":                       {lines: []string{delta(`{"content":"Hi"}`) + "\r", "\r", stop + "\r", done}, text: "Hi"},
		"there is no space after the colon":         {lines: []string{strings.Replace(delta(`{"content":"Hi"}`), ": ", ":", 1), stop, done}, text: "Hi"},
		"no blank line is between the events":       {lines: []string{delta(`{"content":"H"}`), delta(`{"content":"i"}`), stop, done}, text: "Hi"},
		"other fields and comments are about":       {lines: []string{": hello", "event: message", "id: 7", "retry: 10", delta(`{"content":"Hi"}`), "", stop, done}, text: "Hi"},
		"400 comments come before the first word":   {lines: []string{strings.Repeat(": OPENROUTER PROCESSING\n\n", 400), delta(`{"content":"Hi"}`), stop, done}, text: "Hi"},
		"a byte order mark comes first":             {lines: []string{"\ufeff" + delta(`{"content":"Hi"}`), stop, done}, text: "Hi"},
		"[DONE] is missing":                         {lines: []string{delta(`{"content":"Hi"}`), stop, ""}, text: "Hi"},
		"the last line has no newline":              {lines: []string{delta(`{"content":"Hi"}`), stop}, text: "Hi"},
		"the finish is missing, but not [DONE]":     {lines: []string{delta(`{"content":"Hi"}`), done}, text: "Hi"},
		"the content is a list":                     {lines: []string{delta(`{"content":[{"type":"text","text":"Hi"}]}`), stop, done}, text: "Hi"},
		"fields have other types":                   {lines: []string{`data: {"id":7,"choices":[{"delta":{"content":"Hi","refusal":{},"tool_calls":null},"finish_reason":null}],"usage":"none"}`, stop, done}, text: "Hi"},
		"a second choice is not ours":               {lines: []string{delta(`{"content":"Hi"}`), `data: {"choices":[{"index":1,"delta":{"content":"Ho"}}]}`, stop, done}, text: "Hi"},
		"the text holds data: and {\"error\":":      {lines: []string{delta(`{"content":"data: {\"error\":1}"}`), stop, done}, text: `data: {"error":1}`},
		"the error of a chunk is null":              {lines: []string{`data: {"error":null,"choices":[{"delta":{"content":"Hi"}}]}`, stop, done}, text: "Hi"},
		"id and name come in every piece":           {lines: []string{tool(`{"index":0,"id":"a","function":{"name":"weather","arguments":"{\"city\""}}`), tool(`{"index":0,"id":"a","function":{"name":"weather","arguments":":\"Bonn\"}"}}`), calls, done}, calls: weather},
		"{} comes before the arguments":             {lines: []string{tool(`{"index":0,"id":"a","function":{"name":"weather","arguments":"{}"}}`), tool(`{"index":0,"function":{"arguments":"{\"city\":\"Bonn\"}"}}`), calls, done}, calls: weather},
		"the name comes without arguments":          {lines: []string{tool(`{"index":0,"id":"a","function":{"name":"weather"}}`), tool(`{"index":0,"function":{"arguments":"{\"city\":\"Bonn\"}"}}`), calls, done}, calls: weather},
		"the arguments are null at first":           {lines: []string{tool(`{"index":0,"id":"a","function":{"name":"weather","arguments":null}}`), tool(`{"index":0,"function":{"arguments":"{\"city\":\"Bonn\"}"}}`), calls, done}, calls: weather},
		"the arguments are an object":               {lines: []string{tool(`{"index":0,"id":"a","function":{"name":"weather","arguments":{"city":"Bonn"}}}`), calls, done}, calls: weather},
		"there is no index":                         {lines: []string{tool(`{"id":"a","function":{"name":"weather","arguments":"{\"city\""}}`), tool(`{"function":{"arguments":":\"Bonn\"}"}}`), calls, done}, calls: weather},
		"a call finishes with stop":                 {lines: []string{tool(`{"index":0,"id":"a","function":{"name":"weather","arguments":"{\"city\":\"Bonn\"}"}}`), stop, done}, calls: weather},
		"calls are from the time before tools":      {lines: []string{delta(`{"function_call":{"name":"weather","arguments":""}}`), delta(`{"function_call":{"arguments":"{\"city\":\"Bonn\"}"}}`), calls, done}, calls: weather},
		"an empty call stands beside the answer":    {lines: []string{tool(`{"id":"","function":{"name":"","arguments":""}}`), delta(`{"content":"Hi"}`), stop, done}, text: "Hi"},
		"two calls have no index but ids":           {lines: []string{tool(`{"id":"a","function":{"name":"x","arguments":"{}"}}`), tool(`{"id":"b","function":{"name":"x","arguments":"{}"}}`), calls, done}, calls: []model.Call{{Name: "x", Args: "{}"}, {Name: "x", Args: "{}"}}},
		"two calls have one index and their ids":    {lines: []string{tool(`{"index":0,"id":"a","function":{"name":"x","arguments":"{\"n\":1}"}}`), tool(`{"index":0,"id":"b","function":{"name":"x","arguments":"{\"n\":2}"}}`), calls, done}, calls: []model.Call{{Name: "x", Args: `{"n":1}`}, {Name: "x", Args: `{"n":2}`}}},
		"two calls come in one chunk without marks": {lines: []string{tool(`{"index":0,"function":{"name":"x","arguments":"{\"n\":1}"}},{"index":0,"function":{"name":"x","arguments":"{\"n\":2}"}}`), calls, done}, calls: []model.Call{{Name: "x", Args: `{"n":1}`}, {Name: "x", Args: `{"n":2}`}}},
		"the pieces of two calls alternate":         {lines: []string{tool(`{"index":0,"id":"a","function":{"name":"x","arguments":"{\"n\""}},{"index":1,"id":"b","function":{"name":"y","arguments":"{\"m\""}}`), tool(`{"index":1,"function":{"arguments":":2}"}},{"index":0,"function":{"arguments":":1}"}}`), calls, done}, calls: []model.Call{{Name: "x", Args: `{"n":1}`}, {Name: "y", Args: `{"m":2}`}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, err := collect(t, streaming(tc.lines...))
			if err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(tc.calls, r.Calls); diff != "" || text(r, step.PartText) != tc.text {
				t.Errorf("text %q, calls -want +got:\n%s", text(r, step.PartText), diff)
			}
			want := map[bool]step.Finish{true: step.FinishCalls, false: step.FinishStop}[len(tc.calls) > 0]
			if r.Finish != want {
				t.Errorf("finish %q, want %q", r.Finish, want)
			}
		})
	}
}

// Before the first arguments, pieces with one index and one id make one name.
func TestANameInPieces(t *testing.T) {
	name := func(id, piece string) string {
		return tool(fmt.Sprintf(`{"index":0,"id":%q,"function":{"name":%q,"arguments":""}}`, id, piece))
	}
	const args = `{"index":0,"function":{"arguments":"{}"}}`
	none := []string{"one"}
	cases := map[string]struct {
		tools []string
		lines []string
		want  []string
	}{
		"two pieces":                           {none, []string{name("a", "Wri"), name("", "te"), tool(args)}, []string{"Write"}},
		"three pieces, the id in each":         {none, []string{name("a", "mcp"), name("a", "__files"), name("a", "__read"), tool(args)}, []string{"mcp__files__read"}},
		"the last piece with the arguments":    {none, []string{name("a", "Wri"), tool(`{"index":0,"function":{"name":"te","arguments":"{}"}}`)}, []string{"Write"}},
		"pieces without any id":                {none, []string{name("", "Wri"), name("", "te"), tool(args)}, []string{"Write"}},
		"pieces with an id and no index":       {none, []string{tool(`{"id":"a","function":{"name":"Wri"}}`), tool(`{"id":"a","function":{"name":"te"}}`), tool(`{"id":"a","function":{"arguments":"{}"}}`)}, []string{"Write"}},
		"pieces of two calls in turn":          {none, []string{name("a", "Wri"), tool(`{"index":1,"id":"b","function":{"name":"Re"}}`), name("", "te"), tool(`{"index":1,"function":{"name":"ad"}}`), tool(args)}, []string{"Write", "Read"}},
		"a piece that is a tool, too":          {[]string{"Read", "ReadFile"}, []string{name("a", "Read"), name("", "File"), tool(args)}, []string{"ReadFile"}},
		"two pieces that are the same":         {[]string{"gogo"}, []string{name("a", "go"), name("", "go"), tool(args)}, []string{"gogo"}},
		"the whole name, again":                {[]string{"Write"}, []string{name("a", "Write"), name("a", "Write"), tool(args)}, []string{"Write"}},
		"the whole name of no tool, again":     {none, []string{name("a", "Write"), name("a", "Write"), tool(args)}, []string{"Write"}},
		"all of the name so far":               {none, []string{name("a", "Wri"), name("a", "Write"), tool(args)}, []string{"Write"}},
		"the name behind the arguments":        {none, []string{name("a", "Write"), tool(args), name("a", "Write")}, []string{"Write"}},
		"another name behind the arguments":    {none, []string{name("", "Write"), tool(args), name("", "Read"), tool(args)}, []string{"Write", "Read"}},
		"two tools, without id and arguments":  {[]string{"Write", "Read"}, []string{name("", "Write"), name("", "Read")}, []string{"Write", "Read"}},
		"another id before the arguments came": {none, []string{name("a", "Write"), name("b", "Read"), tool(args)}, []string{"Write", "Read"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ask := *wiretest.Ask
			for _, name := range tc.tools {
				ask.Tools = append(ask.Tools, step.Tool{Name: name, Input: []byte(`{"type":"object"}`)})
			}
			m := at(t, streaming(append(tc.lines, calls, done)...))
			r, err := model.Collect(m.Stream(t.Context(), &ask), nil)
			var got []string
			for _, c := range r.Calls {
				got = append(got, c.Name)
				if c.Args != "{}" {
					t.Errorf("the arguments of %s are %s", c.Name, c.Args)
				}
			}
			if diff := gocmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("error %v, names -want +got:\n%s", err, diff)
			}
		})
	}
}

func TestAnAnswerThatIsNotStreamedIsReadToo(t *testing.T) {
	body := "{\n \"choices\": [{\"message\": {\"content\": \"Hi\", \"tool_calls\": [{\"id\":\"a\",\"function\":{\"name\":\"weather\",\"arguments\":\"{\\\"city\\\":\\\"Bonn\\\"}\"}}]}, \"finish_reason\": \"tool_calls\"}],\n \"usage\": {\"prompt_tokens\": 3, \"completion_tokens\": 4}\n}\n"
	for _, contentType := range []string{"application/json", "text/event-stream", ""} {
		r, err := collect(t, wiretest.Answering(http.StatusOK, contentType, body))
		want := model.Response{
			Parts: []step.Part{{Kind: step.PartText, Text: "Hi"}}, Calls: weather, Finish: step.FinishCalls,
			Usage: step.Usage{InputTokens: 3, OutputTokens: 4},
		}
		if diff := gocmp.Diff(want, r); diff != "" || err != nil {
			t.Errorf("as %q: error %v, -want +got:\n%s", contentType, err, diff)
		}
	}
}

func TestThinkingIsReadUnderAnyName(t *testing.T) {
	cases := map[string][]string{
		"reasoning_content":  {delta(`{"reasoning_content":"Hm"}`), delta(`{"reasoning_content":"m."}`)},
		"reasoning":          {delta(`{"reasoning":"Hm"}`), delta(`{"reasoning":"m."}`)},
		"both, once":         {delta(`{"reasoning":"Hmm.","reasoning_content":"Hmm."}`)},
		"parts of content":   {delta(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"Hmm."}]}]}`)},
		"details":            {delta(`{"reasoning_details":[{"type":"reasoning.text","text":"Hm"}]}`), delta(`{"reasoning_details":[{"type":"reasoning.text","text":"m."}]}`)},
		"details and itself": {delta(`{"reasoning":"Hmm.","reasoning_details":[{"type":"reasoning.text","text":"Hmm."}]}`)},
	}
	for name, lines := range cases {
		t.Run(name, func(t *testing.T) {
			r, err := collect(t, streaming(append(lines, delta(`{"content":"Hi"}`), stop, done)...))
			if err != nil || text(r, step.PartThinking) != "Hmm." || text(r, step.PartText) != "Hi" || len(r.Parts) != 2 {
				t.Errorf("error %v, parts %+v", err, r.Parts)
			}
		})
	}
}

func TestUsage(t *testing.T) {
	cases := map[string]struct {
		line string
		want step.Usage
	}{
		"OpenAI": {
			`{"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,"prompt_tokens_details":{"cached_tokens":64},"completion_tokens_details":{"reasoning_tokens":8}}}`,
			step.Usage{InputTokens: 100, CacheReadTokens: 64, OutputTokens: 20, ReasoningTokens: 8},
		},
		"DeepSeek": {
			`{"usage":{"prompt_tokens":100,"completion_tokens":20,"prompt_cache_hit_tokens":64,"prompt_cache_miss_tokens":36}}`,
			step.Usage{InputTokens: 100, CacheReadTokens: 64, OutputTokens: 20},
		},
		"Moonshot, in the choice": {
			`{"choices":[{"delta":{},"usage":{"prompt_tokens":100,"completion_tokens":20,"cached_tokens":64}}]}`,
			step.Usage{InputTokens: 100, CacheReadTokens: 64, OutputTokens: 20},
		},
		"xAI, which counts thinking in the total only": {
			`{"usage":{"prompt_tokens":165,"completion_tokens":2,"total_tokens":296,"prompt_tokens_details":{"cached_tokens":164},"completion_tokens_details":{"reasoning_tokens":129},"cost_in_usd_ticks":739000}}`,
			step.Usage{InputTokens: 165, CacheReadTokens: 164, OutputTokens: 131, ReasoningTokens: 129, CostMicroUSD: 74, Priced: true},
		},
		"Vercel, which counts it in the details only": {
			`{"usage":{"prompt_tokens":61,"completion_tokens":18,"total_tokens":79,"cost":0.001982,"completion_tokens_details":{"reasoning_tokens":137},"cache_creation_input_tokens":10}}`,
			step.Usage{InputTokens: 61, CacheWriteTokens: 10, OutputTokens: 155, ReasoningTokens: 137, CostMicroUSD: 1982, Priced: true},
		},
		"Mistral, which counts audio in the total only": {
			`{"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":379,"prompt_tokens_details":{"audio_tokens":375,"cached_tokens":0}}}`,
			step.Usage{InputTokens: 378, OutputTokens: 1},
		},
		"Mistral, which says how long the audio is": {
			`{"usage":{"prompt_tokens":4,"completion_tokens":635,"total_tokens":3264,"prompt_audio_seconds":203}}`,
			step.Usage{InputTokens: 2629, OutputTokens: 635},
		},
		"audio and an image in the total only, beside hidden thinking": {
			`{"usage":{"prompt_tokens":10,"completion_tokens":5,"total_tokens":145,"prompt_tokens_details":{"audio_tokens":60,"image_tokens":40,"cached_tokens":90},"completion_tokens_details":{"reasoning_tokens":30}}}`,
			step.Usage{InputTokens: 110, CacheReadTokens: 90, OutputTokens: 35, ReasoningTokens: 30},
		},
		"OpenAI, which counts audio in the prompt": {
			`{"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,"prompt_tokens_details":{"audio_tokens":80,"text_tokens":20},"completion_tokens_details":{"audio_tokens":12}}}`,
			step.Usage{InputTokens: 100, OutputTokens: 20},
		},
		"audio in the prompt, and thinking in the total only": {
			`{"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":150,"prompt_tokens_details":{"audio_tokens":10,"text_tokens":90}}}`,
			step.Usage{InputTokens: 100, OutputTokens: 50},
		},
		"much audio in the prompt, and thinking in the total only": {
			`{"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":150,"prompt_tokens_details":{"audio_tokens":80}}}`,
			step.Usage{InputTokens: 100, OutputTokens: 50},
		},
		"audio in the prompt, and just as much thinking": {
			`{"usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":150,"prompt_tokens_details":{"audio_tokens":30},"completion_tokens_details":{"reasoning_tokens":30}}}`,
			step.Usage{InputTokens: 100, OutputTokens: 50, ReasoningTokens: 30},
		},
		"OpenRouter's cost, as a float that is none": {
			`{"usage":{"prompt_tokens":1,"completion_tokens":1,"cost":1.9999999999999998e-05}}`,
			step.Usage{InputTokens: 1, OutputTokens: 1, CostMicroUSD: 20, Priced: true},
		},
		"Perplexity's cost": {
			`{"usage":{"prompt_tokens":1,"completion_tokens":1,"cost":{"input_tokens_cost":0.1,"total_cost":0.006}}}`,
			step.Usage{InputTokens: 1, OutputTokens: 1, CostMicroUSD: 6000, Priced: true},
		},
		"a cost of nothing is a cost": {
			`{"usage":{"prompt_tokens":1,"completion_tokens":1,"cost":0}}`,
			step.Usage{InputTokens: 1, OutputTokens: 1, Priced: true},
		},
		"numbers made to do harm": {
			`{"usage":{"prompt_tokens":9e99,"completion_tokens":-5,"prompt_tokens_details":{"cached_tokens":1e30},"cost":1e12,"completion_tokens_details":null}}`,
			step.Usage{InputTokens: model.EstimateInput(wiretest.Ask), OutputTokens: 1, CostMicroUSD: 1e12, Priced: true, Estimated: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, err := collect(t, streaming(delta(`{"content":"Hi"}`), stop, "data: "+tc.line, done))
			if diff := gocmp.Diff(tc.want, r.Usage); diff != "" || err != nil {
				t.Errorf("error %v, -want +got:\n%s", err, diff)
			}
		})
	}
}

func TestUsageThatIsNotReportedIsEstimated(t *testing.T) {
	r, err := collect(t, streaming(delta(`{"content":"twelve bytes"}`), stop, done))
	want := step.Usage{InputTokens: model.EstimateInput(wiretest.Ask), OutputTokens: 3, Estimated: true}
	if diff := gocmp.Diff(want, r.Usage); diff != "" || err != nil {
		t.Errorf("error %v, -want +got:\n%s", err, diff)
	}
}

// What was told before an answer broke off is not all that it cost.
func TestUsageOfACutAnswerIsAtLeastWhatCame(t *testing.T) {
	withUsage := func(usage string) string {
		return `data: {"choices":[{"delta":{"content":"twelve bytes"}}],"usage":` + usage + `}`
	}
	cases := map[string]struct {
		lines []string
		want  step.Usage
		told  bool // the input is that of the provider
	}{
		"told in the beginning, then cut": {
			[]string{withUsage(`{"prompt_tokens":100,"completion_tokens":1,"cost":0.5,"prompt_tokens_details":{"cached_tokens":64}}`)},
			step.Usage{InputTokens: 100, CacheReadTokens: 64, OutputTokens: 3, Estimated: true},
			true,
		},
		"told as it grows, then cut": {
			[]string{withUsage(`{"prompt_tokens":100,"completion_tokens":9,"cost":0.5}`)},
			step.Usage{InputTokens: 100, OutputTokens: 9, CostMicroUSD: 500_000, Priced: true, Estimated: true},
			true,
		},
		"zeros, and a whole answer": {
			[]string{withUsage(`{"prompt_tokens":0,"completion_tokens":0}`), stop, done},
			step.Usage{InputTokens: model.EstimateInput(wiretest.Ask), OutputTokens: 3, Estimated: true},
			false,
		},
		"an empty object, and a whole answer": {
			[]string{withUsage(`{}`), stop, done},
			step.Usage{InputTokens: model.EstimateInput(wiretest.Ask), OutputTokens: 3, Estimated: true},
			false,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var told []model.RequestUsage
			r, err := model.Collect(at(t, streaming(tc.lines...)).Stream(t.Context(), wiretest.Ask), func(d model.Delta) { told = append(told, d.Requests...) })
			if diff := gocmp.Diff(tc.want, r.Usage); diff != "" || (err == nil) != (len(tc.lines) > 1) {
				t.Errorf("error %v, -want +got:\n%s", err, diff)
			}
			if isTold := len(told) == 1 && told[0].InputReported && told[0].Usage == tc.want; isTold != tc.told || !isTold && len(told) > 0 {
				t.Errorf("usage of requests %+v", told)
			}
		})
	}
}

// Whatever comes, reading ends, and an answer without an error has a finish.
func FuzzStream(f *testing.F) {
	f.Add([]byte(strings.Join([]string{delta(`{"content":"Hi"}`), tool(`{"index":0,"id":"a","function":{"name":"x","arguments":"{}"}}`), calls, done}, "\n")), 7)
	f.Add([]byte("event: error\ndata: {\"message\":\"x\"}\n\n"), 1)
	f.Add([]byte(`{"choices":[{"message":{"content":[{"text":"a"}]}}],"usage":{"cost":{"total_cost":1}}}`), 3)
	f.Add([]byte("error: {\"code\":500}\n{\"error\":{}}\ndata: {\"error\":\"x\"}"), 2)
	f.Add([]byte(delta(`{"reasoning_details":[{"type":"a","text":"b"},7,null]}`)+"\n"+stop), 4096)
	f.Fuzz(func(t *testing.T, body []byte, size int) {
		one := func(reader io.Reader) (model.Response, error) {
			return collect(t, wiretest.RoundTrip(func(*http.Request) (*http.Response, error) {
				return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(reader)}, nil
			}))
		}
		r, err := one(bytes.NewReader(body))
		if err == nil && r.Finish == "" {
			t.Error("an answer without a finish")
		}
		chopped, err2 := one(&wiretest.Chopped{Data: body, Size: max(size&0xfff, 1)})
		if diff := gocmp.Diff(r, chopped); diff != "" || (err == nil) != (err2 == nil) {
			t.Errorf("the pieces matter: %v, %v:\n%s", err, err2, diff)
		}
	})
}
