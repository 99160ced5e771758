package responses_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/model/wiretest"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/openai"
	"github.com/deckhand-dev/deckhand/runner/step"
)

const completed = `{"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":7,"output_tokens":5}}}`

func added(index int, item string) string {
	return fmt.Sprintf(`{"type":"response.output_item.added","output_index":%d,"item":%s}`, index, item)
}

func done(index int, item string) string {
	return fmt.Sprintf(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, index, item)
}

func delta(kind string, index int, text string) string {
	return fmt.Sprintf(`{"type":"response.%s.delta","output_index":%d,"delta":%q}`, kind, index, text)
}

// parts is the content of an answer in one line.
func parts(t *testing.T, r model.Response) string {
	t.Helper()
	var lines []string
	for p, call := range recorded(2, "", r).Content() {
		line := string(p.Kind) + " " + p.Text
		if call != nil {
			line += call.Name + string(call.Args)
		}
		lines = append(lines, strings.TrimSpace(line+" "+string(p.Provider)))
	}
	return strings.Join(lines, " | ")
}

func TestStreams(t *testing.T) {
	const message, reasoning, call = `{"type":"message","id":"m"}`, `{"type":"reasoning","id":"r"}`, `{"type":"function_call","id":"f","call_id":"c","name":"Ls","arguments":""}`
	cases := map[string]struct {
		events []string
		want   string
	}{
		"a text": {
			[]string{added(0, message), delta("output_text", 0, "H"), delta("output_text", 0, "i"), done(0, `{"type":"message","content":[{"text":"Hi"}]}`)},
			"text Hi",
		},
		"a text with a phase": {
			[]string{added(0, `{"type":"message","phase":"commentary"}`), delta("output_text", 0, "Hi"), done(0, message)},
			`text Hi {"type":"message","phase":"commentary"}`,
		},
		"two messages": {
			[]string{added(0, message), delta("output_text", 0, "A"), done(0, message), added(1, message), delta("output_text", 1, "B"), done(1, `{"type":"message","phase":"final_answer"}`)},
			`text A {"type":"message"} | text B {"type":"message","phase":"final_answer"}`,
		},
		"a text that comes whole": {[]string{done(0, `{"type":"message","content":[{"text":"H"},{"text":"i"}]}`)}, "text Hi"},
		"a text whose last pieces are lost": {
			[]string{added(0, message), delta("output_text", 0, "H"), done(0, `{"type":"message","content":[{"text":"H"},{"text":"i"}]}`)}, "text Hi",
		},
		"a text whose end is another text": {
			[]string{added(0, message), delta("output_text", 0, "Hi"), done(0, `{"type":"message","content":[{"text":"Ho"}]}`)}, "text Hi",
		},
		"a text that no item began": {[]string{delta("output_text", 0, "Hi")}, "text Hi"},
		"encrypted reasoning": {
			[]string{
				added(0, `{"type":"reasoning","id":"r","encrypted_content":"half"}`), delta("reasoning_summary_text", 0, "Hm"),
				done(0, `{"type":"reasoning","id":"r","status":"completed","summary":[{"type":"summary_text","text":"Hm"}],"content":null,"encrypted_content":"whole"}`),
				delta("output_text", 1, "Hi"),
			},
			`thinking Hm {"encrypted_content":"whole","summary":[{"type":"summary_text","text":"Hm"}],"type":"reasoning"} | text Hi`,
		},
		"reasoning that is not shown, twice": {
			[]string{done(0, `{"type":"reasoning","id":"r","encrypted_content":"a","summary":[]}`), done(1, `{"type":"reasoning","encrypted_content":"b"}`), delta("output_text", 2, "Hi")},
			`thinking  {"encrypted_content":"a","summary":[],"type":"reasoning"} | thinking  {"encrypted_content":"b","summary":[],"type":"reasoning"} | text Hi`,
		},
		"reasoning in sections": {
			[]string{
				`{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"A"}`,
				`{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":1,"delta":"B"}`, delta("output_text", 1, "Hi"),
			},
			"thinking A\n\nB | text Hi",
		},
		"reasoning of an open model": {
			[]string{added(0, reasoning), delta("reasoning_text", 0, "Hm"), done(0, `{"type":"reasoning","content":[{"type":"reasoning_text","text":"Hm"}]}`), delta("output_text", 1, "Hi")},
			`thinking Hm {"content":[{"type":"reasoning_text","text":"Hm"}],"summary":[],"type":"reasoning"} | text Hi`,
		},
		"reasoning that no model reads again": {
			[]string{done(0, `{"type":"reasoning","id":"r","summary":[{"text":"Hm"}]}`), delta("output_text", 1, "Hi")}, "thinking Hm | text Hi",
		},
		"a call": {
			[]string{added(0, call), delta("function_call_arguments", 0, `{"a`), delta("function_call_arguments", 0, `":1}`), `{"type":"response.function_call_arguments.done","output_index":0,"arguments":"{\"a\":1}"}`, done(0, call)},
			`call Ls{"a":1} {"type":"function_call","call_id":"c"}`,
		},
		"a call whose end corrects its pieces": {
			[]string{added(0, call), delta("function_call_arguments", 0, `{"a`), `{"type":"response.function_call_arguments.done","output_index":0,"arguments":"{\"b\":1}"}`},
			`call Ls{"b":1} {"type":"function_call","call_id":"c"}`,
		},
		"a call that comes whole": {
			[]string{done(0, `{"type":"function_call","call_id":"c","name":"Ls","arguments":"{\"a\":1}"}`)}, `call Ls{"a":1} {"type":"function_call","call_id":"c"}`,
		},
		"a call whose arguments are an object": {
			[]string{done(0, `{"type":"function_call","call_id":"c","name":"Ls","arguments":{"a":1}}`)}, `call Ls{"a":1} {"type":"function_call","call_id":"c"}`,
		},
		"a call whose name and id come last": {
			[]string{delta("function_call_arguments", 0, `{}`), done(0, `{"type":"function_call","call_id":"c","name":"Ls","arguments":"{}"}`)},
			`call Ls{} {"type":"function_call","call_id":"c"}`,
		},
		"a call before reasoning and another call": {
			[]string{
				done(0, `{"type":"function_call","call_id":"c","name":"A"}`), done(1, `{"type":"reasoning","encrypted_content":"e"}`),
				done(2, `{"type":"function_call","call_id":"d","name":"B"}`),
			},
			`call A{} {"type":"function_call","call_id":"c"} | thinking  {"encrypted_content":"e","summary":[],"type":"reasoning"} | call B{} {"type":"function_call","call_id":"d"}`,
		},
		"ids that change from event to event": {
			[]string{
				`{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"x1"}}`,
				`{"type":"response.output_text.delta","output_index":0,"item_id":"x2","delta":"H"}`, `{"type":"response.output_text.delta","output_index":0,"item_id":"x3","delta":"i"}`,
				done(0, `{"type":"message","id":"x4","content":[{"text":"Hi"}]}`),
			},
			"text Hi",
		},
		"events without an index": {
			[]string{
				`{"type":"response.output_item.added","item":{"type":"function_call","id":"a","name":"A"}}`, `{"type":"response.output_item.added","item":{"type":"function_call","id":"b","name":"B"}}`,
				`{"type":"response.function_call_arguments.delta","item_id":"a","delta":"{\"x\":1}"}`, `{"type":"response.function_call_arguments.delta","item_id":"b","delta":"{}"}`,
			},
			`call A{"x":1} | call B{}`,
		},
		"calls without an index and an id": {
			[]string{
				`{"type":"response.output_item.added","item":{"type":"function_call","name":"A","arguments":"{}"}}`,
				`{"type":"response.output_item.added","item":{"type":"function_call","name":"B","arguments":"{}"}}`,
			},
			`call A{} | call B{}`,
		},
		"a phase that comes after another item": {
			[]string{added(0, message), delta("output_text", 0, "Hi"), done(1, `{"type":"function_call","name":"A"}`), done(0, `{"type":"message","phase":"commentary"}`)},
			`text Hi | call A{}`,
		},
		"a search of the provider": {
			[]string{done(0, `{"type":"web_search_call","id":"ws","status":"completed"}`), delta("output_text", 1, "Hi")}, `opaque  {"type":"web_search_call"} | text Hi`,
		},
		"values of other types": {
			[]string{`{"type":"response.output_text.delta","output_index":"0","delta":5}`, `{"type":"response.output_item.added","output_index":0,"item":7}`, `{"type":7}`, delta("output_text", 0, "Hi")},
			"text Hi",
		},
		"events that repeat what others say": {
			[]string{
				delta("output_text", 0, "Hi"), `{"type":"response.output_text.done","output_index":0,"text":"Hi"}`,
				`{"type":"response.content_part.done","output_index":0,"part":{"type":"output_text","text":"Hi"}}`, `{"type":"response.new_kind","delta":"x"}`,
			},
			"text Hi",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, err := collect(t, streaming(append(tc.events, completed)...))
			if got := parts(t, r); got != tc.want || err != nil {
				t.Errorf("error %v\ngot  %s\nwant %s", err, got, tc.want)
			}
		})
	}
}

// How an answer ends is in its last event alone.
func TestEnds(t *testing.T) {
	end := func(kind, response string) string {
		return `{"type":"response.` + kind + `","response":` + response + `}`
	}
	said, called := delta("output_text", 0, "Hi"), done(1, `{"type":"function_call","call_id":"c","name":"Ls","arguments":"{}"}`)
	is := func(want error) func(error) bool {
		return func(got error) bool { return fmt.Sprintf("%T", want) == fmt.Sprintf("%T", got) }
	}
	cases := map[string]struct {
		events  []string
		finish  step.Finish
		unclear string
		err     func(error) bool
	}{
		"completed":                     {events: []string{said, completed}, finish: step.FinishStop},
		"completed with calls":          {events: []string{said, called, completed}, finish: step.FinishCalls},
		"completed without a status":    {events: []string{said, end("completed", `{}`)}, finish: step.FinishStop},
		"completed, still in progress":  {events: []string{said, end("completed", `{"status":"in_progress"}`)}, finish: step.FinishStop},
		"completed without a response":  {events: []string{said, `{"type":"response.completed"}`}, finish: step.FinishStop},
		"the output limit":              {events: []string{said, end("incomplete", `{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}`)}, finish: step.FinishLength},
		"the output limit, with a call": {events: []string{called, end("incomplete", `{"incomplete_details":{"reason":"max_output_tokens"}}`)}, finish: step.FinishLength},
		"incomplete in a completed one": {events: []string{called, end("completed", `{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}}`)}, finish: step.FinishLength},
		"incomplete without a reason":   {events: []string{said, end("incomplete", `{"status":"incomplete"}`)}, finish: step.FinishLength},
		"a content filter":              {events: []string{said, end("incomplete", `{"incomplete_details":{"reason":"content_filter"}}`)}, finish: step.FinishRefusal},
		"a refusal":                     {events: []string{delta("refusal", 0, "No."), completed}, finish: step.FinishRefusal},
		"a refusal that comes whole":    {events: []string{done(0, `{"type":"message","content":[{"type":"refusal","refusal":"No."}]}`), completed}, finish: step.FinishRefusal},
		"a reason that is not known":    {events: []string{said, end("incomplete", `{"incomplete_details":{"reason":"tired"}}`)}, finish: step.FinishOther, unclear: "tired"},
		"cancelled":                     {events: []string{said, end("completed", `{"status":"cancelled"}`)}, err: is(&model.BrokenOffError{})},
		"failed without an error":       {events: []string{said, end("failed", `{"status":"failed"}`)}, err: is(&model.BrokenOffError{})},
		"failed":                        {events: []string{said, end("failed", `{"status":"failed","error":{"code":"server_error","message":"oops"}}`)}, err: is(&model.UnavailableError{})},
		"failed for its rate":           {events: []string{end("failed", `{"error":{"code":"rate_limit_exceeded","message":"slow down"}}`)}, err: is(&model.RateLimitedError{})},
		"failed for its prompt":         {events: []string{end("failed", `{"error":{"code":"invalid_prompt","message":"flagged"}}`)}, err: is(&model.RefusedError{})},
		"failed for its length":         {events: []string{end("failed", `{"error":{"code":"context_length_exceeded","message":"Your input exceeds the context window of this model."}}`)}, err: is(&model.ContextTooLongError{})},
		"an error":                      {events: []string{said, `{"type":"error","code":"server_error","message":"oops","param":null}`}, err: is(&model.UnavailableError{})},
		"an error in an object":         {events: []string{said, `{"type":"error","error":{"type":"invalid_request_error","message":"bad"}}`}, err: is(&model.BadRequestError{})},
		"nothing":                       {events: []string{said}, err: is(&model.IncompleteError{})},
		"the mark of another API":       {events: []string{said, "[DONE]"}, err: is(&model.IncompleteError{})},
		"only its head":                 {events: []string{`{"type":"response.created","response":{"status":"in_progress","output":[]}}`}, err: is(&model.IncompleteError{})},
		"a call that only the end has":  {events: []string{said, end("completed", `{"status":"completed","output":[{"type":"message","content":[{"text":"I look."}]},{"type":"function_call","call_id":"c","name":"Ls","arguments":"{}"}]}`)}, finish: step.FinishCalls},
		"events after the end":          {events: []string{said, completed, delta("output_text", 0, "more")}, finish: step.FinishStop},
		"all items in the end":          {events: []string{`{"type":"response.created"}`, end("completed", `{"status":"completed","output":[{"type":"message","content":[{"text":"Hi"}]}]}`)}, finish: step.FinishStop},
		"more calls than are executed":  {events: append(manyCalls(300), completed), finish: step.FinishLength},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, err := collect(t, streaming(tc.events...))
			if tc.err != nil {
				if !tc.err(err) || r.Finish != "" || r.Usage.InputTokens == 0 && name != "failed for its rate" && !strings.HasPrefix(name, "failed for") {
					t.Errorf("finish %q, usage %+v, error %T %v", r.Finish, r.Usage, err, err)
				}
				return
			}
			if err != nil || r.Finish != tc.finish || r.UnclearReason != tc.unclear {
				t.Errorf("finish %q, %q, error %v", r.Finish, r.UnclearReason, err)
			}
			if tc.finish == step.FinishStop && parts(t, r) != "text Hi" {
				t.Errorf("got %s", parts(t, r))
			}
		})
	}
}

// Calls that the end has too are counted: some gateways change their ids.
func TestCallsOfTheEnd(t *testing.T) {
	call := func(id string) string {
		return `{"type":"function_call","call_id":"` + id + `","name":"Ls","arguments":"{}"}`
	}
	for name, tc := range map[string]struct {
		end  string
		want int
	}{
		"the same":           {call("a"), 1},
		"with another id":    {call("b"), 1},
		"behind other items": {`{"type":"reasoning","id":"r"},` + call("b"), 1},
		"one more":           {call("a") + "," + call("b"), 2},
		"two more":           {call("a") + "," + call("b") + "," + call("c"), 3},
	} {
		r, err := collect(t, streaming(done(0, call("a")), `{"type":"response.completed","response":{"status":"completed","output":[`+tc.end+`]}}`))
		if err != nil || len(r.Calls) != tc.want {
			t.Errorf("%s: calls %v, error %v", name, r.Calls, err)
		}
	}
}

func manyCalls(n int) []string {
	var events []string
	for i := range n {
		events = append(events, done(i, fmt.Sprintf(`{"type":"function_call","call_id":"c%d","name":"Ls","arguments":"{}"}`, i)))
	}
	return events
}

func TestUsage(t *testing.T) {
	cases := map[string]struct {
		usage string
		want  step.Usage
	}{
		"with all details": {
			`{"input_tokens":100,"input_tokens_details":{"cached_tokens":60,"cache_write_tokens":20},"output_tokens":50,"output_tokens_details":{"reasoning_tokens":30},"total_tokens":150}`,
			step.Usage{InputTokens: 100, CacheReadTokens: 60, CacheWriteTokens: 20, OutputTokens: 50, ReasoningTokens: 30},
		},
		"reasoning in the total alone": {
			`{"input_tokens":100,"output_tokens":50,"output_tokens_details":{"reasoning_tokens":30},"total_tokens":180}`,
			step.Usage{InputTokens: 100, OutputTokens: 80, ReasoningTokens: 30},
		},
		"more in the cache than was read": {
			`{"input_tokens":10,"input_tokens_details":{"cached_tokens":60},"output_tokens":5}`,
			step.Usage{InputTokens: 10, CacheReadTokens: 10, OutputTokens: 5},
		},
		"a price":    {`{"input_tokens":1,"output_tokens":1,"cost":0.5}`, step.Usage{InputTokens: 1, OutputTokens: 1, CostMicroUSD: 500_000, Priced: true}},
		"xAI's unit": {`{"input_tokens":1,"output_tokens":1,"cost_in_usd_ticks":20000}`, step.Usage{InputTokens: 1, OutputTokens: 1, CostMicroUSD: 2, Priced: true}},
		"none":       {`null`, step.Usage{InputTokens: 6, OutputTokens: 1, Estimated: true}},
		"zeros":      {`{"input_tokens":0,"output_tokens":0}`, step.Usage{InputTokens: 6, OutputTokens: 1, Estimated: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r, err := collect(t, streaming(delta("output_text", 0, "Hi"), `{"type":"response.completed","response":{"status":"completed","usage":`+tc.usage+`}}`))
			if diff := gocmp.Diff(tc.want, r.Usage); diff != "" || err != nil {
				if tc.want.Estimated && r.Usage.Estimated && r.Usage.InputTokens > 0 && r.Usage.OutputTokens > 0 {
					return
				}
				t.Errorf("error %v, -want +got:\n%s", err, diff)
			}
		})
	}
}

func TestADocumentIsReadToo(t *testing.T) {
	document := func(text string) wiretest.RoundTrip {
		return wiretest.Answering(http.StatusOK, "application/json", text)
	}
	r, err := collect(t, document(`{"object":"response","status":"completed","error":null,"output":[{"type":"reasoning","id":"r","encrypted_content":"e","summary":[]},
		{"type":"message","phase":"commentary","content":[{"type":"output_text","text":"Hi"}]},{"type":"function_call","call_id":"c","name":"Ls","arguments":"{}"}],
		"usage":{"input_tokens":7,"output_tokens":5}}`))
	want := `thinking  {"encrypted_content":"e","summary":[],"type":"reasoning"} | text Hi {"type":"message","phase":"commentary"} | call Ls{} {"type":"function_call","call_id":"c"}`
	if got := parts(t, r); got != want || err != nil || r.Finish != step.FinishCalls || r.Usage.InputTokens != 7 {
		t.Errorf("%s, finish %q, usage %+v, error %v", got, r.Finish, r.Usage, err)
	}
	for text, isRight := range map[string]func(error) bool{
		`{"status":"queued","output":[]}`:                                                  model.Transient,
		`{"status":"failed","output":[],"error":{"code":"server_error","message":"oops"}}`: model.Transient,
		`{"hello":"world"}`: func(err error) bool { _, ok := errors.AsType[*model.NotAModelError](err); return ok },
	} {
		if _, err := collect(t, document(text)); err == nil || !isRight(err) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Any text that is cut after any UTF-16 unit arrives whole.
func TestHalvesOfSurrogatePairsAreJoined(t *testing.T) {
	draw := rand.New(rand.NewPCG(1, 2))
	event := func(kind string, index int, literal string) string {
		return fmt.Sprintf(`{"type":"response.%s.delta","output_index":%d,"delta":%s}`, kind, index, literal)
	}
	for range 300 {
		thinking, said := "t"+wiretest.Text(draw), "s"+wiretest.Text(draw)
		args, _ := json.Marshal(map[string]string{"a": wiretest.Text(draw)})
		var events []string
		for i, kind := range []string{"reasoning_summary_text", "output_text", "function_call_arguments"} {
			for _, l := range wiretest.Literals(draw, []string{thinking, said, string(args)}[i]) {
				events = append(events, event(kind, i, l))
			}
		}
		r, err := collect(t, streaming(append(events, completed)...))
		if err != nil || len(r.Calls) != 1 || len(r.Parts) < 2 {
			t.Fatalf("%+v, %v", r, err)
		}
		if diff := gocmp.Diff([]string{thinking, said, string(args)}, []string{r.Parts[0].Text, r.Parts[1].Text, r.Calls[0].Args}); diff != "" {
			t.Fatalf("-want +got:\n%s", diff)
		}
	}
}

// Whatever an endpoint quotes, the key is in no error.
func TestNoErrorHoldsTheKey(t *testing.T) {
	const key = "sk-live-0123456789abcdef"
	for name, network := range map[string]http.RoundTripper{
		"an error body":          wiretest.Answering(401, "application/json", `{"error":{"message":"Incorrect API key: `+key+`"}}`),
		"an error in the stream": streaming(`{"type":"error","message":"` + key + `"}`),
		"a failed answer":        streaming(`{"type":"response.failed","response":{"error":{"message":"` + key + `"}}}`),
		"a broken event":         streaming(key),
		"a page":                 wiretest.Answering(200, "text/html", "<html>"+key),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := collect(t, network, func(o *openai.Options) { wiretest.WithKey(key)(o) })
			wiretest.CheckNoKey(t, err, key)
		})
	}
}

// FuzzStream checks that no bytes make the reader panic, or succeed without an end.
func FuzzStream(f *testing.F) {
	for _, seed := range []string{stream(2), "data: " + completed, "data: " + done(0, `{"type":"function_call"}`), `{"output":[{}],"status":"completed"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := collect(t, wiretest.Answering(200, "text/event-stream", string(data)))
		if (err == nil) != (r.Finish != "") {
			t.Errorf("finish %q, error %v", r.Finish, err)
		}
	})
}
