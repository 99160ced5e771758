package anthropic_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/model/wiretest"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/anthropic"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// written is the body of the one request that a model makes.
func written(t *testing.T, req *model.Request, mods ...func(*anthropic.Options)) string {
	t.Helper()
	var body []byte
	m := at(t, wiretest.RoundTrip(func(r *http.Request) (*http.Response, error) {
		body, _ = io.ReadAll(r.Body)
		return nil, errors.New("enough")
	}), mods...)
	if _, err := model.Collect(m.Stream(t.Context(), req), nil); body == nil {
		t.Fatal(err)
	}
	return string(body)
}

// cacheMark is a mark of the cache in a body.
const cacheMark = `,"cache_control":{"type":"ephemeral"}`

// messages are the messages of a body, marks of the cache apart.
func messages(t *testing.T, body string) string {
	t.Helper()
	var b struct {
		Messages json.RawMessage `json:"messages"`
	}
	if err := json.Unmarshal([]byte(body), &b); err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(b.Messages), cacheMark, "")
}

func call(id, name, args string) step.Call {
	return step.Call{ID: id, Name: name, Args: json.RawMessage(args)}
}

func result(id, text string) step.Step {
	s := wiretest.Says(step.RoleTool, text)
	s.CallID = id
	return s
}

func opaque(raw string) step.Part {
	return step.Part{Kind: step.PartOpaque, Provider: json.RawMessage(raw)}
}

// answered is a step of the model main.
func byMain(parts []step.Part, calls ...step.Call) step.Step {
	return step.Step{Role: step.RoleAssistant, Model: "main", Parts: parts, Calls: calls}
}

func textPart(s string) step.Part { return step.Part{Kind: step.PartText, Text: s} }

func thought(s, signature string) step.Part {
	return step.Part{Kind: step.PartThinking, Text: s, Signature: signature}
}

func TestSessionsAreWrittenStrictly(t *testing.T) {
	const hello = `{"role":"user","content":[{"type":"text","text":"Hello?"}]}`
	user := wiretest.Says(step.RoleUser, "Hello?")
	failed := result("s2c2", "no")
	failed.IsError = true
	cases := map[string]struct {
		steps []step.Step
		want  string
	}{
		"what users say one after the other is one turn": {
			[]step.Step{user, wiretest.Says(step.RoleUser, "Hey!")},
			`[{"role":"user","content":[{"type":"text","text":"Hello?"},{"type":"text","text":"Hey!"}]}]`,
		},
		"nothing is said in words": {
			[]step.Step{wiretest.Says(step.RoleUser, " \n")},
			`[{"role":"user","content":[{"type":"text","text":"(no output)"}]}]`,
		},
		"results come first, in the order of the calls, with what is said after them": {
			[]step.Step{user, byMain([]step.Part{textPart("I look.")}, call("s2c1", "a", `{"x":1}`), call("s2c2", "b", `{}`)), wiretest.Says(step.RoleUser, "Hurry!"), failed, result("s2c1", "")},
			`[` + hello + `,{"role":"assistant","content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"s0002c001","name":"a","input":{"x":1}},{"type":"tool_use","id":"s0002c002","name":"b","input":{}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"s0002c001","content":"(no output)"},{"type":"tool_result","tool_use_id":"s0002c002","content":"no","is_error":true},{"type":"text","text":"Hurry!"}]}]`,
		},
		"a call without a result gets one, and a result without a call is not sent": {
			[]step.Step{user, byMain(nil, call("s2c1", "a", `{}`)), result("s9c9", "stray"), wiretest.Says(step.RoleUser, "Well?")},
			`[` + hello + `,{"role":"assistant","content":[{"type":"tool_use","id":"s0002c001","name":"a","input":{}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"s0002c001","content":"(no output)","is_error":true},{"type":"text","text":"Well?"}]}]`,
		},
		"a session begins and ends with the user": {
			[]step.Step{byMain([]step.Part{textPart("Hi.")})},
			`[{"role":"user","content":[{"type":"text","text":"(no output)"}]},{"role":"assistant","content":[{"type":"text","text":"Hi."}]},{"role":"user","content":[{"type":"text","text":"Continue."}]}]`,
		},
		"answers one after the other are one turn": {
			[]step.Step{user, byMain([]step.Part{textPart("Hi.")}), byMain([]step.Part{textPart("Ho.")}), user},
			`[` + hello + `,{"role":"assistant","content":[{"type":"text","text":"Hi."},{"type":"text","text":"Ho."}]},` + hello + `]`,
		},
		"an answer of nothing but space is said in words": {
			[]step.Step{user, byMain([]step.Part{textPart("\n\n")}), user},
			`[` + hello + `,{"role":"assistant","content":[{"type":"text","text":"(no output)"}]},` + hello + `]`,
		},
		"an answer does not end with thinking": {
			[]step.Step{user, byMain([]step.Part{thought("Hm.", "sig")}), user, byMain([]step.Part{{Kind: step.PartThinking, Provider: json.RawMessage(`[{"type":"redacted_thinking","data":"x"}]`)}}), user},
			`[` + hello + `,{"role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature":"sig"},{"type":"text","text":"(no output)"}]},` + hello +
				`,{"role":"assistant","content":[{"type":"redacted_thinking","data":"x"},{"type":"text","text":"(no output)"}]},` + hello + `]`,
		},
		"arguments are objects": {
			[]step.Step{user, byMain(nil, call("s2c1", "a", `"{\"x\": "`), call("s2c2", "b", `[1]`), call("s2c3", "c", ``), call("s2c4", "d", `null`), call("s2c5", "e", `""`)), result("s2c1", "1"), result("s2c2", "2"), result("s2c3", "3"), result("s2c4", "4"), result("s2c5", "5")},
			`[` + hello + `,{"role":"assistant","content":[{"type":"tool_use","id":"s0002c001","name":"a","input":{"_":"{\"x\": "}},{"type":"tool_use","id":"s0002c002","name":"b","input":{"_":[1]}},{"type":"tool_use","id":"s0002c003","name":"c","input":{}},{"type":"tool_use","id":"s0002c004","name":"d","input":{}},{"type":"tool_use","id":"s0002c005","name":"e","input":{}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"s0002c001","content":"1"},{"type":"tool_result","tool_use_id":"s0002c002","content":"2"},{"type":"tool_result","tool_use_id":"s0002c003","content":"3"},{"type":"tool_result","tool_use_id":"s0002c004","content":"4"},{"type":"tool_result","tool_use_id":"s0002c005","content":"5"}]}]`,
		},
		"names and ids are legal": {
			[]step.Step{user, byMain(nil, call("s3c1.s2c1", "no such tool!", `{}`)), result("s3c1.s2c1", "<no> & 'such'")},
			`[` + hello + `,{"role":"assistant","content":[{"type":"tool_use","id":"s0002c001","name":"no_such_tool_","input":{}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"s0002c001","content":"<no> & 'such'"}]}]`,
		},
		"thinking goes back as it came": {
			[]step.Step{user, byMain([]step.Part{thought("Hm.", "sig"), textPart("Hi.")}), user},
			`[` + hello + `,{"role":"assistant","content":[{"type":"thinking","thinking":"Hm.","signature":"sig"},{"type":"text","text":"Hi."}]},` + hello + `]`,
		},
		"thinking that is not shown goes back too": {
			[]step.Step{user, byMain([]step.Part{thought("", "sig"), textPart("Hi.")}), user},
			`[` + hello + `,{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"sig"},{"type":"text","text":"Hi."}]},` + hello + `]`,
		},
		"thinking that carries no signature does not": {
			[]step.Step{user, byMain([]step.Part{thought("Hm.", ""), textPart("Hi.")}), user},
			`[` + hello + `,{"role":"assistant","content":[{"type":"text","text":"Hi."}]},` + hello + `]`,
		},
		"several blocks of thinking go back as they came": {
			[]step.Step{user, byMain([]step.Part{{Kind: step.PartThinking, Text: "AB", Signature: "ab", Provider: json.RawMessage(`[{"signature":"a","thinking":"A","type":"thinking"},{"data":"<x>","type":"redacted_thinking"}]`)}, textPart("Hi.")}), user},
			`[` + hello + `,{"role":"assistant","content":[{"signature":"a","thinking":"A","type":"thinking"},{"data":"<x>","type":"redacted_thinking"},{"type":"text","text":"Hi."}]},` + hello + `]`,
		},
		"what only the provider reads goes back in its place": {
			[]step.Step{user, byMain([]step.Part{
				textPart("I look."), opaque(`{"id":"srv_1","input":{},"name":"web_search","type":"server_tool_use"}`), opaque(`{"content":["<&>"],"tool_use_id":"srv_1","type":"web_search_tool_result"}`),
				{Kind: step.PartText, Text: "Found.", Provider: json.RawMessage(`{"citations":[{"encrypted_index":"I"}]}`)},
				textPart(" Yes."),
			}), user},
			`[` + hello + `,{"role":"assistant","content":[{"type":"text","text":"I look."},{"id":"srv_1","input":{},"name":"web_search","type":"server_tool_use"},{"content":["<&>"],"tool_use_id":"srv_1","type":"web_search_tool_result"},` +
				`{"type":"text","text":"Found.","citations":[{"encrypted_index":"I"}]},{"type":"text","text":" Yes."}]},` + hello + `]`,
		},
		"a search that was cut before its result does not": {
			[]step.Step{user, byMain([]step.Part{textPart("I look."), opaque(`{"id":"srv_1","input":{},"name":"web_search","type":"server_tool_use"}`)}), user},
			`[` + hello + `,{"role":"assistant","content":[{"type":"text","text":"I look."}]},` + hello + `]`,
		},
		"a call goes back where it stood": {
			[]step.Step{user, byMain([]step.Part{thought("A", "a"), {Kind: step.PartCall, Provider: json.RawMessage(`{"caller":{"type":"code"}}`)}, thought("B", "b")}, call("s2c1", "a", `{}`), call("s2c2", "b", `{}`)), result("s2c1", "1"), result("s2c2", "2")},
			`[` + hello + `,{"role":"assistant","content":[{"type":"thinking","thinking":"A","signature":"a"},{"type":"tool_use","id":"s0002c001","name":"a","input":{},"caller":{"type":"code"}},{"type":"thinking","thinking":"B","signature":"b"},{"type":"tool_use","id":"s0002c002","name":"b","input":{}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"s0002c001","content":"1"},{"type":"tool_result","tool_use_id":"s0002c002","content":"2"}]}]`,
		},
		"the call of a journal of before goes back where its note stood": {
			[]step.Step{user, byMain([]step.Part{thought("A", "a"), opaque(`{"note":{"call":0,"caller":{"type":"code"}}}`), thought("B", "b"), opaque(`{"note":{"call":7}}`)}, call("s2c1", "a", `{}`), call("s2c2", "b", `{}`)), result("s2c1", "1"), result("s2c2", "2")},
			`[` + hello + `,{"role":"assistant","content":[{"type":"thinking","thinking":"A","signature":"a"},{"type":"tool_use","id":"s0002c001","name":"a","input":{},"caller":{"type":"code"}},{"type":"thinking","thinking":"B","signature":"b"},{"type":"tool_use","id":"s0002c002","name":"b","input":{}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"s0002c001","content":"1"},{"type":"tool_result","tool_use_id":"s0002c002","content":"2"}]}]`,
		},
		"a note of a call that is not there is passed over": {
			[]step.Step{user, byMain([]step.Part{opaque(`{"note":{"call":0}}`), textPart("A"), opaque(`{"note":{"call":7}}`), textPart("B")}, call("s2c1", "a", `{}`), call("s2c2", "b", `{}`)), result("s2c1", "1"), result("s2c2", "2")},
			`[` + hello + `,{"role":"assistant","content":[{"type":"tool_use","id":"s0002c001","name":"a","input":{}},{"type":"text","text":"A"},{"type":"text","text":"B"},{"type":"tool_use","id":"s0002c002","name":"b","input":{}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"s0002c001","content":"1"},{"type":"tool_result","tool_use_id":"s0002c002","content":"2"}]}]`,
		},
		"so do its citations": {
			[]step.Step{user, byMain([]step.Part{textPart("Found."), opaque(`{"note":{"citations":[{"encrypted_index":"I"}]}}`), textPart(" Yes."), opaque(`{"note":{}}`)}), user},
			`[` + hello + `,{"role":"assistant","content":[{"type":"text","text":"Found.","citations":[{"encrypted_index":"I"}]},{"type":"text","text":" Yes."}]},` + hello + `]`,
		},
		"another model's citations and the makers of its calls do not go anywhere": {
			[]step.Step{user, {Role: step.RoleAssistant, Model: "other", Parts: []step.Part{
				{Kind: step.PartText, Text: "Hi.", Provider: json.RawMessage(`{"citations":[{}]}`)},
				{Kind: step.PartCall, Provider: json.RawMessage(`{"caller":{"type":"code"}}`)},
				thought("A", "a"), textPart("Ho."),
			}, Calls: []step.Call{call("s2c1", "a", `{}`)}}, result("s2c1", "1")},
			`[` + hello + `,{"role":"assistant","content":[{"type":"text","text":"Hi."},{"type":"tool_use","id":"s0002c001","name":"a","input":{}},{"type":"text","text":"Ho."}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"s0002c001","content":"1"}]}]`,
		},
		"another model's thinking and blocks do not go anywhere": {
			[]step.Step{user, {Role: step.RoleAssistant, Model: "other", Parts: []step.Part{thought("A", "a"), opaque(`{"type":"server_tool_use"}`), textPart("Hi.")}}, user},
			`[` + hello + `,{"role":"assistant","content":[{"type":"text","text":"Hi."}]},` + hello + `]`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := messages(t, written(t, &model.Request{Steps: tc.steps}))
			if diff := gocmp.Diff(tc.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestProvidersThatDemandThinkingGetSome(t *testing.T) {
	steps := []step.Step{
		wiretest.Says(step.RoleUser, "Hello?"),
		byMain([]step.Part{thought("Hm.", "")}, call("s2c1", "a", `{}`)),
		result("s2c1", "1"),
		{Role: step.RoleAssistant, Model: "other", Calls: []step.Call{call("s4c1", "a", `{}`)}},
		result("s4c1", "1"),
	}
	for _, provider := range []string{"DeepSeek", "Kimi"} {
		got := messages(t, written(t, &model.Request{Steps: steps}, from(provider, "m")))
		for _, want := range []string{
			`[{"type":"thinking","thinking":"Hm."},{"type":"tool_use","id":"s0002c001"`,
			`[{"type":"thinking","thinking":"(no thinking)"},{"type":"tool_use","id":"s0004c001"`,
		} {
			if !strings.Contains(got, want) {
				t.Errorf("%s lacks %s:\n%s", provider, want, got)
			}
		}
		off := &model.Request{Steps: steps, Params: model.Params{Reasoning: model.ReasoningOff}}
		if got := written(t, off, from(provider, "m")); strings.Contains(got, "(no thinking)") {
			t.Errorf("%s gets thinking although it is off:\n%s", provider, got)
		}
	}
}

// Cache marks apart, each request of a session begins with the bytes of the one
// before it, and the place that one marked last is marked again.
func TestRequestsAreAppendOnly(t *testing.T) {
	req := &model.Request{
		System: "You are thorough.", Params: model.Params{Reasoning: model.ReasoningLow, MaxOutputTokens: 9000},
		Tools: []step.Tool{{Name: "a", Description: "A <tool>.", Input: json.RawMessage(`{"type":"object"}`)}, {Name: "b", Input: json.RawMessage(`{"type":"object"}`)}},
	}
	closing := regexp.MustCompile(`\]\}\]\}$`)
	before, marked := "", 0
	seq := int64(0)
	add := func(s step.Step) { seq++; s.Seq = seq; req.Steps = append(req.Steps, s) }
	add(wiretest.Says(step.RoleUser, "Begin."))
	for n := range 200 {
		body := written(t, req)
		if marks := strings.Count(body, cacheMark); marks > 4 || n > 0 && marks != 4 {
			t.Fatalf("request %d has %d marks", n, marks)
		}
		plain := strings.ReplaceAll(body, cacheMark, "")
		if !strings.HasPrefix(plain, before) {
			t.Fatalf("request %d does not begin with the one before it:\n%s\n%s", n, before, plain)
		}
		first := strings.Count(body[:strings.LastIndex(body, cacheMark)], cacheMark)
		if at := len(strings.ReplaceAll(body[:nth(body, cacheMark, first)], cacheMark, "")); n > 0 && at != marked {
			t.Fatalf("request %d marks %d again, want %d", n, at, marked)
		}
		before = closing.ReplaceAllString(plain, "")
		marked = len(strings.ReplaceAll(body[:strings.LastIndex(body, cacheMark)], cacheMark, ""))
		id := step.CallID("", seq+1, 1)
		add(byMain([]step.Part{thought(fmt.Sprint("Thought ", n), "sig"), textPart("So.")}, call(id, "a", `{"n":1}`)))
		add(result(id, strings.Repeat("x", n)))
		if n%7 == 0 {
			add(wiretest.Says(step.RoleUser, "And hurry."))
		}
	}
}

// nth is where the n-th piece begins.
func nth(s, piece string, n int) int {
	at := -1
	for range n {
		at += 1 + strings.Index(s[at+1:], piece)
	}
	return at
}

func TestParams(t *testing.T) {
	half, zero := 0.5, 0.0
	cases := map[string]struct {
		provider, model string
		params          model.Params
		want            string
	}{
		"nothing is asked for":                             {"Anthropic", "claude-sonnet-4-5", model.Params{}, `{"max_tokens":32000,"model":"claude-sonnet-4-5","stream":true}`},
		"a temperature of 0":                               {"Anthropic", "claude-sonnet-4-5", model.Params{Temperature: &zero}, `{"max_tokens":32000,"model":"claude-sonnet-4-5","stream":true,"temperature":0}`},
		"a temperature and a top_p, of which it takes one": {"Anthropic", "claude-sonnet-4-5", model.Params{Temperature: &zero, TopP: &half}, `{"max_tokens":32000,"model":"claude-sonnet-4-5","stream":true,"temperature":0}`},
		"a temperature and a top_p":                        {"Anthropic", "claude-3-5-haiku", model.Params{Temperature: &zero, TopP: &half}, `{"max_tokens":8192,"model":"claude-3-5-haiku","stream":true,"temperature":0,"top_p":0.5}`},
		"a temperature that the model refuses":             {"Anthropic", "claude-opus-4.7", model.Params{Temperature: &zero}, `{"max_tokens":32000,"model":"claude-opus-4.7","stream":true}`},
		"a limit":                                          {"Anthropic", "claude-sonnet-4-5", model.Params{MaxOutputTokens: 100}, `{"max_tokens":100,"model":"claude-sonnet-4-5","stream":true}`},
		"thinking, and so no temperature":                  {"Anthropic", "claude-sonnet-4-5", model.Params{Reasoning: "Low", Temperature: &half}, `{"max_tokens":32000,"model":"claude-sonnet-4-5","stream":true,"thinking":{"budget_tokens":4096,"type":"enabled"}}`},
		"thinking hard, within the limit":                  {"Anthropic", "claude-sonnet-4-5", model.Params{Reasoning: "High", MaxOutputTokens: 4000}, `{"max_tokens":4000,"model":"claude-sonnet-4-5","stream":true,"thinking":{"budget_tokens":3000,"type":"enabled"}}`},
		"thinking where the limit leaves no room":          {"Anthropic", "claude-sonnet-4-5", model.Params{Reasoning: "High", MaxOutputTokens: 1100}, `{"max_tokens":1100,"model":"claude-sonnet-4-5","stream":true}`},
		"thinking, within a limit that is merged in":       {"Anthropic", "claude-sonnet-4-5", model.Params{Reasoning: "High", Extra: json.RawMessage(`{"max_tokens":2000}`)}, `{"max_tokens":2000,"model":"claude-sonnet-4-5","stream":true,"thinking":{"budget_tokens":1500,"type":"enabled"}}`},
		"no thinking, where there is none unasked":         {"Anthropic", "claude-sonnet-4-5", model.Params{Reasoning: "Off"}, `{"max_tokens":32000,"model":"claude-sonnet-4-5","stream":true}`},
		"thinking as the model sees fit":                   {"Anthropic", "claude-opus-4-7", model.Params{Reasoning: "Medium"}, `{"max_tokens":32000,"model":"claude-opus-4-7","output_config":{"effort":"medium"},"stream":true,"thinking":{"display":"summarized","type":"adaptive"}}`},
		"no thinking, where there is some unasked":         {"Anthropic", "claude-opus-5", model.Params{Reasoning: "Off"}, `{"max_tokens":32000,"model":"claude-opus-5","stream":true,"thinking":{"type":"disabled"}}`},
		"no thinking, where that is called otherwise":      {"Anthropic", "claude-sonnet-5-5", model.Params{Reasoning: "Off"}, `{"max_tokens":32000,"model":"claude-sonnet-5-5","stream":true,"thinking":{"type":"between_tools"}}`},
		"no thinking, where that cannot be":                {"Anthropic", "claude-opus-5-5", model.Params{Reasoning: "Off"}, `{"max_tokens":32000,"model":"claude-opus-5-5","output_config":{"effort":"low"},"stream":true}`},
		"a compatible server":                              {"AnthropicCompatible", "m", model.Params{Reasoning: "Low", TopP: &half}, `{"max_tokens":8192,"model":"m","stream":true,"thinking":{"budget_tokens":4096,"type":"enabled"}}`},
		"DeepSeek thinks with effort":                      {"DeepSeek", "deepseek-v4-pro", model.Params{Reasoning: "High"}, `{"max_tokens":32768,"model":"deepseek-v4-pro","output_config":{"effort":"high"},"stream":true,"thinking":{"budget_tokens":24576,"type":"enabled"}}`},
		"DeepSeek does not think":                          {"DeepSeek", "deepseek-chat", model.Params{Reasoning: "Off", Temperature: &zero}, `{"max_tokens":8192,"model":"deepseek-chat","stream":true,"temperature":0,"thinking":{"type":"disabled"}}`},
		"Kimi thinks":                                      {"Kimi", "kimi-k2.6", model.Params{Reasoning: "Low", Temperature: &zero}, `{"max_tokens":32768,"model":"kimi-k2.6","stream":true,"thinking":{"budget_tokens":4096,"type":"enabled"}}`},
		"Kimi without thinking takes a temperature":        {"Kimi", "kimi-k2-0905-preview", model.Params{Temperature: &zero}, `{"max_tokens":16384,"model":"kimi-k2-0905-preview","stream":true,"temperature":0}`},
		"Kimi thinks always, and has no thinking to set":   {"Kimi", "kimi-k3.1-pro", model.Params{Reasoning: "High", Temperature: &zero}, `{"max_tokens":32768,"model":"kimi-k3.1-pro","output_config":{"effort":"max"},"stream":true}`},
		"Kimi has no effort between low and high":          {"Kimi", "kimi-k3", model.Params{Reasoning: "Medium"}, `{"max_tokens":32768,"model":"kimi-k3","output_config":{"effort":"high"},"stream":true}`},
		"Kimi thinks least":                                {"Kimi", "kimi-k3", model.Params{Reasoning: "Off"}, `{"max_tokens":32768,"model":"kimi-k3","output_config":{"effort":"low"},"stream":true}`},
		"Kimi refuses not to think":                        {"Kimi", "kimi-k2.7-code", model.Params{Reasoning: "Off", Temperature: &zero}, `{"max_tokens":32768,"model":"kimi-k2.7-code","stream":true}`},
		"Kimi was made to think":                           {"Kimi", "kimi-k2-thinking-turbo", model.Params{Reasoning: "Off"}, `{"max_tokens":32768,"model":"kimi-k2-thinking-turbo","stream":true}`},
		"whatever else is merged over it":                  {"Anthropic", "claude-sonnet-4-5", model.Params{Reasoning: "Low", Extra: json.RawMessage(`{"thinking":{"budget_tokens":1024},"service_tier":"auto","stream":null}`)}, `{"max_tokens":32000,"model":"claude-sonnet-4-5","service_tier":"auto","thinking":{"budget_tokens":1024,"type":"enabled"}}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := written(t, &model.Request{Steps: wiretest.Ask.Steps, Params: tc.params}, from(tc.provider, tc.model))
			head, _, _ := strings.Cut(got, `,"messages":`)
			if diff := gocmp.Diff(tc.want, head+"}"); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestThinkingIsNotAskedForInTheMiddleOfCallsThatBeganWithout(t *testing.T) {
	other := step.Step{Role: step.RoleAssistant, Model: "other", Calls: []step.Call{call("s2c1", "a", `{}`)}}
	own := byMain([]step.Part{thought("Hm.", "sig")}, call("s2c1", "a", `{}`))
	user, reply := wiretest.Says(step.RoleUser, "Hello?"), result("s2c1", "1")
	cases := map[string]struct {
		steps []step.Step
		model string
		want  bool
	}{
		"another model began":                {[]step.Step{user, other, reply}, "claude-sonnet-4-5", false},
		"another model began, a user spoke":  {[]step.Step{user, other, reply, user}, "claude-sonnet-4-5", true},
		"it began by thinking":               {[]step.Step{user, own, reply}, "claude-sonnet-4-5", true},
		"another began, and it is up to her": {[]step.Step{user, other, reply}, "claude-opus-4-7", true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := &model.Request{Steps: tc.steps, Params: model.Params{Reasoning: model.ReasoningLow}}
			if got := strings.Contains(written(t, req, from("Anthropic", tc.model)), `"thinking":{`); got != tc.want {
				t.Errorf("asked for thinking: %v", got)
			}
		})
	}
}

func TestSystemAndTools(t *testing.T) {
	req := &model.Request{
		System: "Be <brief>.", Steps: wiretest.Ask.Steps,
		Tools: []step.Tool{{Name: "a", Description: "A.", Input: json.RawMessage(`{ "type": "object" }`)}, {Name: "b"}},
	}
	const plain = `"tools":[{"name":"a","description":"A.","input_schema":{"type":"object"}},{"name":"b","input_schema":{"type":"object"}}],"system":[{"type":"text","text":"Be <brief>."}],` +
		`"messages":[{"role":"user","content":[{"type":"text","text":"Hello?"}]}]}`
	const cached = `"tools":[{"name":"a","description":"A.","input_schema":{"type":"object"}},{"name":"b","input_schema":{"type":"object"}` + cacheMark + `}],"system":[{"type":"text","text":"Be <brief>."` + cacheMark + `}],` +
		`"messages":[{"role":"user","content":[{"type":"text","text":"Hello?"` + cacheMark + `}]}]}`
	for provider, want := range map[string]string{"Anthropic": cached, "AnthropicCompatible": cached, "DeepSeek": plain, "Kimi": plain} {
		_, got, _ := strings.Cut(written(t, req, from(provider, "m")), `"stream":true,`)
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", provider, diff)
		}
	}
}

func TestParamsThatCannotBeSent(t *testing.T) {
	for name, params := range map[string]model.Params{
		"extra that is no object": {Extra: json.RawMessage(`[1]`)},
		"extra that is no JSON":   {Extra: json.RawMessage(`{`)},
		"a level nobody knows":    {Reasoning: "Extreme"},
	} {
		_, err := model.Collect(at(t, nil).Stream(t.Context(), &model.Request{Steps: wiretest.Ask.Steps, Params: params}), nil)
		if _, ok := errors.AsType[*model.BadRequestError](err); !ok {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
