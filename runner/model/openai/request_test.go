package openai_test

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
	"github.com/deckhand-dev/deckhand/runner/model/openai"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// body is what is sent for a request.
func body(t *testing.T, req *model.Request, mods ...func(*openai.Options)) string {
	t.Helper()
	var sent []byte
	m := at(t, wiretest.RoundTrip(func(r *http.Request) (*http.Response, error) {
		sent, _ = io.ReadAll(r.Body)
		if int64(len(sent)) != r.ContentLength {
			t.Errorf("Content-Length %d for %d bytes", r.ContentLength, len(sent))
		}
		return nil, errors.New("enough")
	}), mods...)
	_, _ = model.Collect(m.Stream(t.Context(), req), nil)
	return string(sent)
}

func official(o *openai.Options) { o.Provider = openai.ProviderOpenAI }

// differs compares two JSON documents.
func differs(t *testing.T, want, got string) string {
	t.Helper()
	var a, b any
	if err := errors.Join(json.Unmarshal([]byte(want), &a), json.Unmarshal([]byte(got), &b)); err != nil {
		t.Fatalf("%v in %s", err, got)
	}
	return gocmp.Diff(a, b)
}

func TestBody(t *testing.T) {
	zero, one := 0.0, 1.0
	plain := `"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"Hello?"}]`
	cases := map[string]struct {
		change func(*model.Request)
		mod    func(*openai.Options)
		want   string
	}{
		"a plain request says no more than it must": {
			change: func(*model.Request) {}, want: `{` + plain + `}`,
		},
		"the system prompt comes first": {
			change: func(r *model.Request) { r.System = "Be brief." },
			want:   `{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Hello?"}]}`,
		},
		"a temperature of 0 is sent": {
			change: func(r *model.Request) { r.Params.Temperature, r.Params.TopP = &zero, &one },
			want:   `{"temperature":0,"top_p":1,` + plain + `}`,
		},
		"a compatible endpoint knows max_tokens": {
			change: func(r *model.Request) { r.Params.MaxOutputTokens = 100 }, want: `{"max_tokens":100,` + plain + `}`,
		},
		"OpenAI knows max_completion_tokens and prompt_cache_key": {
			change: func(r *model.Request) { r.Params.MaxOutputTokens, r.CacheKey = 100, "run-7" }, mod: official,
			want: `{"max_completion_tokens":100,"prompt_cache_key":"run-7",` + plain + `}`,
		},
		"a cache key that is too long becomes its hash": {
			change: func(r *model.Request) { r.CacheKey = strings.Repeat("k", 65) }, mod: official,
			want: `{"prompt_cache_key":"f39cdc2584758c99cf81c1f41d2572f54e17066afffc9d187aeafe5f7cbe2122",` + plain + `}`,
		},
		"a compatible endpoint gets no cache key": {
			change: func(r *model.Request) { r.CacheKey = "run-7" }, want: `{` + plain + `}`,
		},
		"reasoning is an effort": {
			change: func(r *model.Request) { r.Params.Reasoning = model.ReasoningHigh }, want: `{"reasoning_effort":"high",` + plain + `}`,
		},
		"reasoning may be switched off": {
			change: func(r *model.Request) { r.Params.Reasoning = model.ReasoningOff }, mod: official,
			want: `{"reasoning_effort":"none",` + plain + `}`,
		},
		"extra wins over everything, deep, and a null removes": {
			change: func(r *model.Request) {
				r.Params.Temperature = &one
				r.Params.Extra = json.RawMessage(`{"temperature":0.20,"stream_options":null,"thinking":{"type":"enabled","budget":null},"seed":12345678901234567890}`)
			},
			want: `{"model":"m","stream":true,"messages":[{"role":"user","content":"Hello?"}],"temperature":0.20,"thinking":{"type":"enabled"},"seed":12345678901234567890}`,
		},
		"tools are functions, with the schema as it is": {
			change: func(r *model.Request) {
				r.Tools = []step.Tool{{Name: "Ls", Description: "Lists <dirs> & files.", Input: json.RawMessage(`{"type":"object","properties":{"path":{"type":"string"}}}`)}}
			},
			want: `{"tools":[{"type":"function","function":{"name":"Ls","description":"Lists <dirs> & files.","parameters":{"type":"object","properties":{"path":{"type":"string"}}}}}],` + plain + `}`,
		},
		"models of OpenAI that think refuse to be told how to draw": {
			change: func(r *model.Request) { r.Params.Temperature, r.Params.TopP = &zero, &one },
			mod:    func(o *openai.Options) { o.Provider, o.Model = openai.ProviderOpenAI, "gpt-5-mini" },
			want:   `{` + strings.Replace(plain, `"m"`, `"gpt-5-mini"`, 1) + `}`,
		},
		"the later ones take it while they do not think": {
			change: func(r *model.Request) { r.Params.Temperature, r.Params.Reasoning = &zero, model.ReasoningOff },
			mod:    func(o *openai.Options) { o.Provider, o.Model = openai.ProviderOpenAI, "gpt-5.4" },
			want:   `{"temperature":0,"reasoning_effort":"none",` + strings.Replace(plain, `"m"`, `"gpt-5.4"`, 1) + `}`,
		},
		"the others take it": {
			change: func(r *model.Request) { r.Params.Temperature = &zero },
			mod:    func(o *openai.Options) { o.Provider, o.Model = openai.ProviderOpenAI, "gpt-4.1" },
			want:   `{"temperature":0,` + strings.Replace(plain, `"m"`, `"gpt-4.1"`, 1) + `}`,
		},
		"a name that the client's checks know is no matter": {
			change: func(r *model.Request) { r.Params.Temperature, r.Params.MaxOutputTokens = &zero, 5 },
			mod:    func(o *openai.Options) { o.Model = "gpt-5-at-home" },
			want:   `{"max_tokens":5,"temperature":0,` + strings.Replace(plain, `"m"`, `"gpt-5-at-home"`, 1) + `}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := *wiretest.Ask
			tc.change(&req)
			if tc.mod == nil {
				tc.mod = func(*openai.Options) {}
			}
			if diff := differs(t, tc.want, body(t, &req, tc.mod)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestABodyIsTheSameEachTime(t *testing.T) {
	req := *wiretest.Ask
	req.Params.Extra = json.RawMessage(`{"b":1,"a":{"d":1,"c":2}}`)
	first := body(t, &req)
	for range 20 {
		if again := body(t, &req); again != first {
			t.Fatalf("%s\n%s", first, again)
		}
	}
}

func TestExtraThatIsNoObjectIsABadRequest(t *testing.T) {
	for _, extra := range []string{`[1]`, `{"a":`, `7`, `{} {}`} {
		req := *wiretest.Ask
		req.Params.Extra = json.RawMessage(extra)
		_, err := model.Collect(at(t, nil).Stream(t.Context(), &req), nil)
		var bad *model.BadRequestError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), "extra parameters") {
			t.Errorf("%s: %v", extra, err)
		}
	}
}

// asks is an assistant's step with one call.
func asks(id, name, args string, parts ...step.Part) step.Step {
	return step.Step{
		Role: step.RoleAssistant, Model: "sonnet", Parts: parts,
		Calls: []step.Call{{ID: id, Name: name, Args: json.RawMessage(args)}},
	}
}

func answers(id, text string) step.Step {
	s := wiretest.Says(step.RoleTool, text)
	s.CallID = id
	return s
}

// thought is a thinking part.
func thought(text, provider string) step.Part {
	return step.Part{Kind: step.PartThinking, Text: text, Provider: json.RawMessage(provider)}
}

func TestMessages(t *testing.T) {
	call := func(extra string) string {
		return `{"role":"assistant","content":null` + extra + `,"tool_calls":[{"id":"s0002c001","type":"function","function":{"name":"Ls","arguments":"{\"path\": \".\"}"}}]}`
	}
	result := `{"role":"tool","tool_call_id":"s0002c001","content":"a.txt"}`
	ls, files := `{"path": "."}`, answers("s2c1", "a.txt")
	named := func(name string) func(*openai.Options) { return func(o *openai.Options) { o.Name = name } }
	cases := map[string]struct {
		steps []step.Step
		mod   func(*openai.Options)
		want  string
	}{
		"a call and its result": {
			steps: []step.Step{asks("s2c1", "Ls", ls), files}, want: call("") + "," + result,
		},
		"an empty result says so": {
			steps: []step.Step{asks("s2c1", "Ls", ls), answers("s2c1", "")},
			want:  call("") + `,{"role":"tool","tool_call_id":"s0002c001","content":"(no output)"}`,
		},
		"an answer that was only thought is not empty": {
			steps: []step.Step{{Role: step.RoleAssistant, Parts: []step.Part{thought("Hm.", "")}}},
			want:  `{"role":"assistant","content":"(no output)"}`,
		},
		"results come in the order of the calls": {
			steps: []step.Step{
				{Role: step.RoleAssistant, Calls: []step.Call{{ID: "s2c1", Name: "A", Args: json.RawMessage(`{}`)}, {ID: "s2c2", Name: "B", Args: json.RawMessage(`{}`)}}},
				answers("s2c2", "two"), answers("s2c1", "one"), wiretest.Says(step.RoleUser, "Go on."),
			},
			want: `{"role":"assistant","content":null,"tool_calls":[{"id":"s0002c001","type":"function","function":{"name":"A","arguments":"{}"}},{"id":"s0002c002","type":"function","function":{"name":"B","arguments":"{}"}}]},
				{"role":"tool","tool_call_id":"s0002c001","content":"one"},{"role":"tool","tool_call_id":"s0002c002","content":"two"},
				{"role":"assistant","content":"(continued)"},{"role":"user","content":"Go on."}`,
		},
		"messages of the user in a row are one message": {
			steps: []step.Step{wiretest.Says(step.RoleUser, "Begin."), wiretest.Says(step.RoleUser, "A summary.")},
			want:  `{"role":"user","content":"Begin.\n\nA summary."}`,
		},
		"a call without thinking gets a blank one behind a call with thinking": {
			steps: []step.Step{asks("s1c1", "Ls", ls, thought("Hm.", "")), answers("s1c1", "a"), asks("s2c1", "Ls", ls), files},
			want:  strings.NewReplacer("s0002c001", "s0001c001", "a.txt", "a").Replace(call(`,"reasoning_content":"Hm."`)+","+result) + "," + call(`,"reasoning_content":" "`) + "," + result,
		},
		"in the field in which thinking came before, also with an answer without calls": {
			steps: []step.Step{
				{Role: step.RoleAssistant, Parts: []step.Part{thought("Hm.", `{"field":"reasoning"}`), {Kind: step.PartText, Text: "Hi"}}},
				wiretest.Says(step.RoleUser, "Look."), asks("s2c1", "Ls", ls), files,
			},
			want: `{"role":"assistant","content":"Hi"},{"role":"user","content":"Look."},` + call(`,"reasoning":" "`) + "," + result,
		},
		"a call before all thinking stays as it was sent": {
			steps: []step.Step{asks("s2c1", "Ls", ls), files, {Role: step.RoleAssistant, Parts: []step.Part{thought("Hm.", ""), {Kind: step.PartText, Text: "Hi"}}}},
			want:  call("") + "," + result + `,{"role":"assistant","content":"Hi"}`,
		},
		"thinking goes back with its calls, to the same model": {
			steps: []step.Step{asks("s2c1", "Ls", ls, thought("Hm.", "")), files}, mod: named("sonnet"),
			want: call(`,"reasoning_content":"Hm."`) + "," + result,
		},
		"thinking of another model stays here": {
			steps: []step.Step{asks("s2c1", "Ls", ls, thought("Hm.", `{"reasoning_details":[{"type":"x"}]}`)), files}, mod: named("gpt"),
			want: call("") + "," + result,
		},
		"OpenAI gets no thinking": {
			steps: []step.Step{asks("s2c1", "Ls", ls, thought("Hm.", "")), files}, mod: official,
			want: call("") + "," + result,
		},
		"thinking without calls stays here": {
			steps: []step.Step{{Role: step.RoleAssistant, Parts: []step.Part{thought("Hm.", ""), {Kind: step.PartText, Text: "Hi"}}}},
			want:  `{"role":"assistant","content":"Hi"}`,
		},
		"thinking goes back under the name under which it came": {
			steps: []step.Step{asks("s2c1", "Ls", ls, thought("Hm.", `{"field":"reasoning"}`)), files},
			want:  call(`,"reasoning":"Hm."`) + "," + result,
		},
		"details stand for the text": {
			steps: []step.Step{asks("s2c1", "Ls", ls, thought("Hm.", `{"reasoning_details":[{"type":"reasoning.text","text":"Hm.","signature":"s"}]}`)), files},
			want:  call(`,"reasoning_details":[{"type":"reasoning.text","text":"Hm.","signature":"s"}]`) + "," + result,
		},
		"broken arguments are read again by the model at OpenAI": {
			steps: []step.Step{asks("s2c1", "Ls", `"{\"path\""`), files}, mod: official,
			want: strings.Replace(call(""), `{\"path\": \".\"}`, `{\"path\"`, 1) + "," + result,
		},
		"and are an empty object where they would be parsed": {
			steps: []step.Step{asks("s2c1", "Ls", `"{\"path\""`), files},
			want:  strings.Replace(call(""), `{\"path\": \".\"}`, `{}`, 1) + "," + result,
		},
		"an invented name is made harmless": {
			steps: []step.Step{asks("s2c1", "file system/ls?", ls), files},
			want:  strings.Replace(call(""), "Ls", "file_system_ls_", 1) + "," + result,
		},
		"an id of a sub-session becomes nine letters and digits": {
			steps: []step.Step{asks("s4c1/s2c1", "Ls", ls), answers("s4c1/s2c1", "a.txt")},
			want:  strings.ReplaceAll(call("")+","+result, "s0002c001", "3aa088d2f"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if tc.mod == nil {
				tc.mod = func(*openai.Options) {}
			}
			var sent struct{ Messages json.RawMessage }
			if err := json.Unmarshal([]byte(body(t, &model.Request{Steps: tc.steps}, tc.mod)), &sent); err != nil {
				t.Fatal(err)
			}
			if diff := differs(t, "["+tc.want+"]", string(sent.Messages)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// What a provider wants back is read from its answer and written into the next
// request, whole, although it came in pieces.
func TestWhatAProviderWantsBackGoesBack(t *testing.T) {
	function := `"function":{"name":"Ls","arguments":"{}"}`
	cases := map[string]struct {
		lines []string
		want  string // fields of the message beside role, content and tool_calls
		extra string // fields of the call
	}{
		"OpenRouter's details, with the signature of Anthropic": {
			lines: []string{
				delta(`{"reasoning":"Hm","reasoning_details":[{"type":"reasoning.text","index":0,"format":"a","text":"Hm"}]}`),
				delta(`{"reasoning":"m.","reasoning_details":[{"type":"reasoning.text","index":0,"format":"a","text":"m."}]}`),
				delta(`{"reasoning_details":[{"type":"reasoning.text","index":0,"format":"a","signature":"sig","text":null}]}`),
				delta(`{"content":"I look."}`),
			},
			want: `"reasoning_details":[{"type":"reasoning.text","index":0,"format":"a","text":"Hmm.","signature":"sig"}]`,
		},
		"details that come after the text": {
			lines: []string{
				delta(`{"content":"I look."}`),
				delta(`{"reasoning_details":[{"type":"reasoning.encrypted","data":"xx"},{"type":"reasoning.encrypted","data":"yy"}]}`),
			},
			want: `"reasoning_details":[{"type":"reasoning.encrypted","data":"xx"},{"type":"reasoning.encrypted","data":"yy"}]`,
		},
		"thinking named reasoning": {
			lines: []string{delta(`{"reasoning":"Hmm."}`), delta(`{"content":"I look."}`)},
			want:  `"reasoning":"Hmm."`,
		},
		"the signatures of Gemini": {
			lines: []string{delta(`{"content":"I look.","extra_content":{"google":{"thought_signature":"m"}}}`)},
			extra: `"extra_content":{"google":{"thought_signature":"c"}},`,
			want:  `"extra_content":{"google":{"thought_signature":"m"}}`,
		},
		"thinking before a call, in a field of another name": {
			lines: []string{delta(`{"content":"I look."}`), delta(`{"reasoning":"Hmm."}`)},
			want:  `"reasoning":"Hmm."`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			lines := append(tc.lines, tool(`{"index":0,"id":"x",`+tc.extra+function+`}`), calls, done)
			r, err := collect(t, streaming(lines...))
			if err != nil {
				t.Fatal(err)
			}
			recorded := asks("s2c1", r.Calls[0].Name, r.Calls[0].Args, r.Parts...)
			got := body(t, &model.Request{Steps: []step.Step{recorded, answers("s2c1", "a.txt")}})
			want := `{"model":"m","stream":true,"stream_options":{"include_usage":true},"messages":[
				{"role":"assistant","content":"I look.",` + tc.want + `,"tool_calls":[{"id":"s0002c001","type":"function",` + tc.extra + function + `}]},
				{"role":"tool","tool_call_id":"s0002c001","content":"a.txt"}]}`
			if diff := differs(t, want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// What belongs to thinking is in its part, and the journal has no part of a call that needs none.
func TestThinkingBeforeACallIsOnePart(t *testing.T) {
	r, err := collect(t, streaming(delta(`{"reasoning":"Hm."}`), tool(`{"index":0,"id":"x","function":{"name":"Ls","arguments":"{}"}}`), calls, done))
	want := []step.Part{{Kind: step.PartThinking, Text: "Hm.", Provider: json.RawMessage(`{"field":"reasoning"}`)}}
	if diff := gocmp.Diff(want, r.Parts); diff != "" || err != nil {
		t.Errorf("error %v, -want +got:\n%s", err, diff)
	}
}

// A signature belongs to its call: it stays with it when another call is dropped, and the
// one that a journal of before has by position is read too.
func TestTheSignatureOfACallGoesBackWithIt(t *testing.T) {
	signed := func(s string) step.Part {
		return step.Part{Kind: step.PartCall, Provider: json.RawMessage(`{"extra_content":{"s":"` + s + `"}}`)}
	}
	said := step.Part{Kind: step.PartText, Text: "I look."}
	before := step.Part{Kind: step.PartThinking, Provider: json.RawMessage(`{"calls":{"1":{"s":"two"}}}`)}
	const one, two = `,"extra_content":{"s":"one"}`, `,"extra_content":{"s":"two"}`
	cases := map[string]struct {
		parts      []step.Part
		one, other string
	}{
		"of the first call":            {[]step.Part{said, signed("one")}, one, ""},
		"of the second":                {[]step.Part{said, {Kind: step.PartCall}, signed("two")}, "", two},
		"of both":                      {[]step.Part{signed("one"), said, signed("two")}, one, two},
		"of a journal of before":       {[]step.Part{before, said}, "", two},
		"of more calls than there are": {[]step.Part{said, signed("one"), signed("two"), signed("three")}, one, two},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := asks("s2c1", "Ls", `{}`, tc.parts...)
			s.Calls = append(s.Calls, step.Call{ID: "s2c2", Name: "Ls", Args: json.RawMessage(`{}`)})
			got := body(t, &model.Request{Steps: []step.Step{s, answers("s2c1", "a"), answers("s2c2", "b")}})
			var sent struct {
				Messages []struct {
					Calls json.RawMessage `json:"tool_calls"`
				}
			}
			if err := json.Unmarshal([]byte(got), &sent); err != nil {
				t.Fatal(err)
			}
			const function = `"type":"function","function":{"name":"Ls","arguments":"{}"}`
			want := `[{"id":"s0002c001",` + function + tc.one + `},{"id":"s0002c002",` + function + tc.other + `}]`
			if diff := differs(t, want, string(sent.Messages[0].Calls)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
