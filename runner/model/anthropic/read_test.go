package anthropic_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/model/wiretest"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// weather is the call that the awkward streams below all mean.
var weather = []model.Call{{Name: "weather", Args: `{"city":"Bonn"}`}}

// hi is a stream that says no more than that.
var hi = begin + text(0, "Hi") + end("end_turn")

// What servers write, seen in the wild, and what they mean.
func TestAwkwardStreams(t *testing.T) {
	start := func(input string) string {
		return begin + blockStart(0, `{"type":"tool_use","id":"t","name":"weather","input":`+input+`}`)
	}
	cases := map[string]struct {
		stream string
		text   string
		calls  []model.Call
	}{
		"lines end with CRLF":                         {stream: strings.ReplaceAll(hi, "\n", "\r\n"), text: "Hi"},
		"there is no space after the colon":           {stream: strings.ReplaceAll(strings.ReplaceAll(hi, "data: ", "data:"), "event: ", "event:"), text: "Hi"},
		"no blank line is between the events":         {stream: strings.ReplaceAll(hi, "\n\n", "\n"), text: "Hi"},
		"the events have no names":                    {stream: dropLines(hi, "event:"), text: "Hi"},
		"no blank line, and no names":                 {stream: strings.ReplaceAll(dropLines(hi, "event:"), "\n\n", "\n"), text: "Hi"},
		"the data have no types":                      {stream: strings.NewReplacer(`"type":"content_block_start",`, "", `"type":"content_block_delta",`, "", `"type":"message_delta",`, "").Replace(hi), text: "Hi"},
		"other fields and comments are about":         {stream: ": hello\n\nid: 7\nretry: 10\n" + strings.ReplaceAll(hi, "\n\n", "\n\n: ping\n\n"), text: "Hi"},
		"a byte order mark comes first":               {stream: "\ufeff" + hi, text: "Hi"},
		"data are on several lines":                   {stream: strings.ReplaceAll(hi, `,"delta"`, ",\ndata: \"delta\""), text: "Hi"},
		"the last line has no newline":                {stream: strings.TrimSpace(hi), text: "Hi"},
		"message_stop is missing":                     {stream: begin + text(0, "Hi") + finish("end_turn"), text: "Hi"},
		"the stop reason is missing, but not the end": {stream: begin + text(0, "Hi") + event("message_stop", ""), text: "Hi"},
		"[DONE] is said too":                          {stream: begin + text(0, "Hi") + finish("end_turn") + "data: [DONE]\n\n", text: "Hi"},
		"the message begins twice":                    {stream: begin + begin + text(0, "Hi") + end("end_turn"), text: "Hi"},
		"the message begins nowhere":                  {stream: text(0, "Hi") + end("end_turn"), text: "Hi"},
		"the block begins nowhere":                    {stream: begin + blockDelta(0, `{"type":"text_delta","text":"Hi"}`) + end("end_turn"), text: "Hi"},
		"the block ends nowhere":                      {stream: begin + blockStart(0, `{"type":"text","text":""}`) + blockDelta(0, `{"type":"text_delta","text":"Hi"}`) + end("end_turn"), text: "Hi"},
		"the block comes whole":                       {stream: begin + whole(0, `{"type":"text","text":"Hi"}`) + end("end_turn"), text: "Hi"},
		"the message comes whole":                     {stream: `data: {"type":"message_start","message":{"content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn"}}` + "\n\n" + event("message_stop", ""), text: "Hi"},
		"events and blocks come that nobody knows":    {stream: begin + event("server_mood", `"mood":"fine"`) + whole(0, `{"type":"hologram"}`) + text(1, "Hi") + end("end_turn"), text: "Hi"},
		"fields have other types":                     {stream: `data: {"type":"message_start","message":{"id":7,"usage":"none","content":null}}` + "\n\n" + text(0, "Hi") + event("message_delta", `"delta":{"stop_reason":"end_turn","stop_sequence":[]},"usage":[]`), text: "Hi"},
		"the text is escaped in every way":            {stream: begin + blockDelta(0, `{"type":"text_delta","text":"\u00e4\ud83d\ude00\n\t\\\"\/"}`) + end("end_turn"), text: "ä😀\n\t\\\"/"},
		"what follows the end is not read":            {stream: hi + "data: {oops\n\n", text: "Hi"},
		"arguments come in pieces":                    {stream: begin + tool(0, "weather", `{"ci`, `ty":"Bonn"`, `}`) + end("tool_use"), calls: weather},
		"arguments come whole":                        {stream: start(`{"city":"Bonn"}`) + blockStop(0) + end("tool_use"), calls: weather},
		"arguments come as text":                      {stream: start(`"{\"city\":\"Bonn\"}"`) + blockStop(0) + end("tool_use"), calls: weather},
		"arguments come whole and in pieces":          {stream: start(`{"city":"Bonn"}`) + blockDelta(0, `{"type":"input_json_delta","partial_json":"{\"city\":"}`) + blockDelta(0, `{"type":"input_json_delta","partial_json":"\"Bonn\"}"}`) + blockStop(0) + end("tool_use"), calls: weather},
		"arguments come quoted, in pieces":            {stream: begin + tool(0, "weather", `"{\"city\"`, `:\"Bonn\"}"`) + end("tool_use"), calls: weather},
		"a call without arguments":                    {stream: begin + tool(0, "now") + end("tool_use"), calls: []model.Call{{Name: "now", Args: "{}"}}},
		"a call whose arguments are null":             {stream: start(`null`) + blockStop(0) + end("tool_use"), calls: []model.Call{{Name: "weather", Args: "{}"}}},
		"a call that ends as a text does":             {stream: begin + tool(0, "weather", `{"city":"Bonn"}`) + end("end_turn"), calls: weather},
		"broken arguments stay as they are":           {stream: begin + tool(0, "weather", `{"city":`) + end("tool_use"), calls: []model.Call{{Name: "weather", Args: `{"city":`}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := collect(t, streaming(tc.stream))
			if err != nil {
				t.Fatal(err)
			}
			want := step.FinishStop
			if tc.calls != nil {
				want = step.FinishCalls
			}
			said := summarize(got)
			if said.Text != tc.text || got.Finish != want {
				t.Errorf("text %q, finish %q; want %q and %q", said.Text, got.Finish, tc.text, want)
			}
			if diff := gocmp.Diff(tc.calls, got.Calls); diff != "" {
				t.Errorf("calls -want +got:\n%s", diff)
			}
		})
	}
}

// dropLines is a text without the lines that begin so.
func dropLines(s, prefix string) string {
	var kept strings.Builder
	for line := range strings.Lines(s) {
		if !strings.HasPrefix(line, prefix) {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

func TestWhyTheModelStopped(t *testing.T) {
	said := text(0, "Hi")
	cases := map[string]struct {
		stream string
		want   step.Finish
		doubt  string // the reason, if it is unclear
	}{
		"end_turn":                   {begin + said + end("end_turn"), step.FinishStop, ""},
		"end_turn without a word":    {begin + end("end_turn"), step.FinishStop, ""},
		"stop_sequence":              {begin + said + end("stop_sequence"), step.FinishStop, ""},
		"tool_use":                   {begin + tool(0, "now") + end("tool_use"), step.FinishCalls, ""},
		"tool_use without a call":    {begin + said + end("tool_use"), step.FinishStop, "tool_use"},
		"max_tokens":                 {begin + said + end("max_tokens"), step.FinishLength, ""},
		"max_tokens in a call":       {begin + tool(0, "now", `{"a`) + end("max_tokens"), step.FinishLength, ""},
		"refusal":                    {begin + said + end("refusal"), step.FinishRefusal, ""},
		"refusal before a word":      {begin + end("refusal"), step.FinishRefusal, ""},
		"a guardrail, at Bedrock":    {begin + said + end("guardrail_intervened"), step.FinishRefusal, ""},
		"a reason that nobody knows": {begin + said + end("tired"), step.FinishOther, "tired"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := collect(t, streaming(tc.stream))
			if err != nil || got.Finish != tc.want || got.UnclearReason != tc.doubt {
				t.Errorf("got %q, unclear reason %q, %v; want %q, %q", got.Finish, got.UnclearReason, err, tc.want, tc.doubt)
			}
		})
	}
}

// A finish reason that breaks an answer off never ends one, whatever came before it. What
// the provider reported of its usage is charged.
func TestAnAnswerThatWasBrokenOff(t *testing.T) {
	cases := map[string]struct {
		reason string
		want   error
	}{
		"by a server that stops":                {"abort", &model.BrokenOffError{Reason: "abort"}},
		"by a network error, in another case":   {"Network-Error", &model.BrokenOffError{Reason: "Network-Error"}},
		"by a call that the server cannot read": {"malformed_tool_use", &model.BrokenOffError{Reason: "malformed_tool_use", Unusable: true}},
		"by a window that is full":              {"model_context_window_exceeded", &model.ContextTooLongError{Message: "the window was full before the answer ended (finish reason model_context_window_exceeded)"}},
	}
	contents := map[string]string{"before a word": "", "in a text": text(0, "Hi"), "in a call": tool(0, "now", `{}`), "in thinking": thinking(0, "Hm", "s")}
	for name, tc := range cases {
		for where, content := range contents {
			t.Run(name+" "+where, func(t *testing.T) {
				got, err := collect(t, streaming(begin+content+end(tc.reason)))
				if diff := gocmp.Diff(tc.want, err); diff != "" || got.Finish != "" {
					t.Errorf("finish %q, error -want +got:\n%s", got.Finish, diff)
				}
				if got.Usage != (step.Usage{InputTokens: 10, OutputTokens: 5}) {
					t.Errorf("usage %+v", got.Usage)
				}
			})
		}
	}
}

// A pause whose stream breaks is no end: the answer is asked for again.
func TestAPauseThatBreaksIsNoEnd(t *testing.T) {
	broken := &brokenBody{Reader: strings.NewReader(begin + text(0, "Wait.") + finish("pause_turn"))}
	got, err := collect(t, wiretest.RoundTrip(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(broken)}, nil
	}))
	if !model.Transient(err) || got.Finish != "" {
		t.Errorf("finish %q, error %v", got.Finish, err)
	}
}

// A brokenBody is a body whose connection is reset where another would end.
type brokenBody struct{ io.Reader }

func (b *brokenBody) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		err = errors.New("connection reset by peer")
	}
	return n, err
}

func TestWhatAnAnswerCost(t *testing.T) {
	start := func(usage string) string { return event("message_start", `"message":{"content":[],"usage":`+usage+`}`) }
	stop := func(usage string) string {
		return event("message_delta", `"delta":{"stop_reason":"end_turn"},"usage":`+usage) + event("message_stop", "")
	}
	cases := map[string]struct {
		stream string
		want   step.Usage
	}{
		"caches are part of the input": {
			start(`{"input_tokens":10,"cache_read_input_tokens":100,"cache_creation_input_tokens":30,"cache_creation":{"ephemeral_5m_input_tokens":10,"ephemeral_1h_input_tokens":20},"output_tokens":1}`) + stop(`{"output_tokens":7}`),
			step.Usage{InputTokens: 140, CacheReadTokens: 100, CacheWriteTokens: 30, OutputTokens: 7},
		},
		"the later report is the whole": {
			start(`{"input_tokens":10,"output_tokens":5}`) + stop(`{"input_tokens":25,"output_tokens":7,"server_tool_use":{"web_search_requests":2}}`),
			step.Usage{InputTokens: 25, OutputTokens: 7},
		},
		"a zero tells nothing": {
			start(`{"input_tokens":10,"output_tokens":5}`) + stop(`{"input_tokens":0,"output_tokens":7}`),
			step.Usage{InputTokens: 10, OutputTokens: 7},
		},
		"thinking is part of the output": {
			start(`{"input_tokens":10}`) + stop(`{"output_tokens":7,"output_tokens_details":{"thinking_tokens":3}}`),
			step.Usage{InputTokens: 10, OutputTokens: 7, ReasoningTokens: 3},
		},
		"what the provider did besides is part of it": {
			start(`{"input_tokens":20}`) + stop(`{"input_tokens":20,"output_tokens":7,"iterations":[{"type":"compaction","input_tokens":100,"cache_read_input_tokens":5,"output_tokens":50},{"type":"message","input_tokens":20,"output_tokens":7}]}`),
			step.Usage{InputTokens: 125, CacheReadTokens: 5, OutputTokens: 57, ContextTokens: 27},
		},
		"a gateway's price": {
			start(`{"input_tokens":10}`) + stop(`{"output_tokens":7,"cost":0.0042}`),
			step.Usage{InputTokens: 10, OutputTokens: 7, CostMicroUSD: 4200, Priced: true},
		},
		"absurd numbers overflow nothing": {
			start(`{"input_tokens":1e99,"cache_read_input_tokens":-5}`) + stop(`{"output_tokens":99999999999999999999}`),
			step.Usage{InputTokens: 0, OutputTokens: 1_000_000_000},
		},
		"nothing is told but that something is": {
			start(`{}`) + text(0, "twelve chars") + stop(`{"input_tokens":0,"output_tokens":0}`),
			step.Usage{InputTokens: model.EstimateInput(wiretest.Ask), OutputTokens: 3, Estimated: true},
		},
		"nothing is told in the end": {
			start(`{"input_tokens":10,"output_tokens":1}`) + text(0, "twelve chars") + event("message_stop", ""),
			step.Usage{InputTokens: 10, OutputTokens: 3, Estimated: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := collect(t, streaming(tc.stream))
			if diff := gocmp.Diff(tc.want, got.Usage); diff != "" && !strings.Contains(name, "absurd") || err != nil {
				t.Errorf("error %v, -want +got:\n%s", err, diff)
			}
			if got.Usage.InputTokens < 0 || got.Usage.OutputTokens > 1_000_000_000 {
				t.Errorf("got %+v", got.Usage)
			}
		})
	}
}

// parts is a list of parts, as JSON so that provider's pieces can be read.
func parts(t *testing.T, list []step.Part) string {
	t.Helper()
	data, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	return strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(string(data))
}

func TestWhatHasToGoBackIsKept(t *testing.T) {
	cases := map[string]struct{ stream, want string }{
		"thinking and its signature": {
			thinking(0, "Hm.", "sig") + text(1, "Hi"),
			`[{"kind":"thinking","text":"Hm.","signature":"sig"},{"kind":"text","text":"Hi"}]`,
		},
		"thinking that is not shown": {
			thinking(0, "", "sig") + text(1, "Hi"),
			`[{"kind":"thinking","signature":"sig"},{"kind":"text","text":"Hi"}]`,
		},
		"thinking that says nothing": {thinking(0, "", "") + text(1, "Hi"), `[{"kind":"text","text":"Hi"}]`},
		"thinking that cannot be read": {
			whole(0, `{"type":"redacted_thinking","data":"<&>"}`) + text(1, "Hi"),
			`[{"kind":"thinking","provider":[{"data":"<&>","type":"redacted_thinking"}]},{"kind":"text","text":"Hi"}]`,
		},
		"several blocks of thinking": {
			thinking(0, "A", "a") + whole(1, `{"type":"redacted_thinking","data":"x"}`) + thinking(2, "B", "b") + text(3, "Hi"),
			`[{"kind":"thinking","text":"AB","signature":"ab","provider":[{"signature":"a","thinking":"A","type":"thinking"},{"data":"x","type":"redacted_thinking"},{"signature":"b","thinking":"B","type":"thinking"}]},{"kind":"text","text":"Hi"}]`,
		},
		"a search of the provider's own, between two texts": {
			text(0, "I look.") +
				blockStart(1, `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}`) +
				blockDelta(1, `{"type":"input_json_delta","partial_json":"{\"query\":"}`) + blockDelta(1, `{"type":"input_json_delta","partial_json":"\"x\"}"}`) + blockStop(1) +
				whole(2, `{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"https://x/?a&b","encrypted_content":"E"}]}`) +
				blockStart(3, `{"type":"text","text":"","citations":[]}`) + blockDelta(3, `{"type":"text_delta","text":"Found."}`) +
				blockDelta(3, `{"type":"citations_delta","citation":{"type":"web_search_result_location","encrypted_index":"I"}}`) + blockStop(3),
			`[{"kind":"text","text":"I look."},` +
				`{"kind":"opaque","provider":{"id":"srvtoolu_1","input":{"query":"x"},"name":"web_search","type":"server_tool_use"}},` +
				`{"kind":"opaque","provider":{"content":[{"type":"web_search_result","url":"https://x/?a&b","encrypted_content":"E"}],"tool_use_id":"srvtoolu_1","type":"web_search_tool_result"}},` +
				`{"kind":"text","text":"Found.","provider":{"citations":[{"type":"web_search_result_location","encrypted_index":"I"}]}}]`,
		},
		"a compaction of the provider's own": {
			blockStart(0, `{"type":"compaction","content":null}`) + blockDelta(0, `{"type":"compaction_delta","content":"Sum"}`) + blockDelta(0, `{"type":"compaction_delta","content":"mary"}`) + blockStop(0) + text(1, "Hi"),
			`[{"kind":"opaque","provider":{"content":"Summary","type":"compaction"}},{"kind":"text","text":"Hi"}]`,
		},
		"a block of a kind that nobody knows, with text in it": {
			blockStart(0, `{"type":"song","text":"La"}`) + blockDelta(0, `{"type":"text_delta","text":"la"}`) + blockDelta(0, `{"type":"tune_delta","key":3}`) + blockStop(0),
			`[{"kind":"opaque","provider":{"key":3,"text":"Lala","type":"song"}}]`,
		},
		"where a call stood that something was said after": {
			thinking(0, "A", "a") + tool(1, "now") + thinking(2, "B", "b") + tool(3, "now"),
			`[{"kind":"thinking","text":"A","signature":"a"},{"kind":"call"},{"kind":"thinking","text":"B","signature":"b"}]`,
		},
		"who made a call, where it was not the model": {
			whole(0, `{"type":"tool_use","id":"t","name":"now","input":{},"caller":{"type":"code_execution_20250825","tool_id":"s"}}`),
			`[{"kind":"call","provider":{"caller":{"type":"code_execution_20250825","tool_id":"s"}}}]`,
		},
		"a call that the model made itself": {
			whole(0, `{"type":"tool_use","id":"t","name":"now","input":{},"caller":{"type":"direct"}}`), `null`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := collect(t, streaming(begin+tc.stream+end("end_turn")))
			if err != nil {
				t.Fatal(err)
			}
			if diff := gocmp.Diff(tc.want, parts(t, got.Parts)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestADocumentIsReadToo(t *testing.T) {
	got, err := collect(t, wiretest.Answering(200, "application/json", ` {"id":"msg_1","type":"message","role":"assistant","content":[
		{"type":"thinking","thinking":"Hm.","signature":"sig"},{"type":"text","text":"Hi"},
		{"type":"tool_use","id":"t","name":"weather","input":{"city":"Bonn"}}],
		"stop_reason":"tool_use","usage":{"input_tokens":10,"output_tokens":5}}`))
	want := model.Response{
		Parts:  []step.Part{{Kind: step.PartThinking, Text: "Hm.", Signature: "sig"}, {Kind: step.PartText, Text: "Hi"}},
		Calls:  weather,
		Finish: step.FinishCalls,
		Usage:  step.Usage{InputTokens: 10, OutputTokens: 5},
	}
	if diff := gocmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v, -want +got:\n%s", err, diff)
	}
}

// A gateway may write what another server gave it, of any type.
func TestAStopReasonOfAnyType(t *testing.T) {
	end := func(reason string) string {
		return begin + text(0, "Hi") + event("message_delta", `"delta":{"stop_reason":`+reason+`},"usage":{"output_tokens":5}`) + event("message_stop", "")
	}
	for reason, want := range map[string]string{`{"type":"abort"}`: "abort", `["error"]`: "error", `{"why":"network_error"}`: "network_error"} {
		_, err := collect(t, streaming(end(reason)))
		if brokenOff, ok := errors.AsType[*model.BrokenOffError](err); !ok || brokenOff.Reason != want {
			t.Errorf("%s: %v", reason, err)
		}
	}
	for _, reason := range []string{`{"type":"end_turn"}`, `["end_turn"]`, `null`} {
		if got, err := collect(t, streaming(end(reason))); err != nil || got.Finish != step.FinishStop {
			t.Errorf("%s: finish %q, %v", reason, got.Finish, err)
		}
	}
}
