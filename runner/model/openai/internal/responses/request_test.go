package responses_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/model/wiretest"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/openai"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// differs compares a value with JSON.
func differs(t *testing.T, want string, got any) string {
	t.Helper()
	var a, b any
	data, err := json.Marshal(got)
	if err := errors.Join(err, json.Unmarshal([]byte(want), &a), json.Unmarshal(data, &b)); err != nil {
		t.Fatalf("%v in %s", err, want)
	}
	return gocmp.Diff(a, b)
}

func TestBody(t *testing.T) {
	zero, half := 0.0, 0.5
	const plain = `"model":"gpt-5.6","stream":true,"store":false,"include":["reasoning.encrypted_content"],"input":[{"type":"message","role":"user","content":"Hello?"}]`
	cases := map[string]struct {
		change func(*model.Request)
		mod    func(*openai.Options)
		want   string
	}{
		"a plain request": {want: plain},
		"instructions and tools": {
			change: func(r *model.Request) {
				r.System = "Be <brief>."
				r.Tools = []step.Tool{{Name: "Ls", Description: "Lists.", Input: json.RawMessage(`{"type":"object"}`)}, {Name: "Now"}}
			},
			want: plain + `,"instructions":"Be <brief>.","tools":[{"type":"function","name":"Ls","description":"Lists.","parameters":{"type":"object"},"strict":false},
				{"type":"function","name":"Now","parameters":{"type":"object","properties":{}},"strict":false}]`,
		},
		"a level of reasoning": {
			change: func(r *model.Request) { r.Params.Reasoning = model.ReasoningMedium },
			want:   plain + `,"reasoning":{"effort":"medium","summary":"auto"}`,
		},
		"no reasoning, so that there is sampling": {
			change: func(r *model.Request) {
				r.Params = model.Params{Reasoning: model.ReasoningOff, Temperature: &zero, TopP: &half}
			},
			want: plain + `,"reasoning":{"effort":"none"},"temperature":0,"top_p":0.5`,
		},
		"no sampling while the model may think": {
			change: func(r *model.Request) { r.Params = model.Params{Temperature: &zero, TopP: &half} }, want: plain,
		},
		"sampling of a model that does not think": {
			change: func(r *model.Request) { r.Params = model.Params{Temperature: &zero} },
			mod:    func(o *openai.Options) { o.Model = "gpt-4.1" },
			want:   strings.Replace(plain, "gpt-5.6", "gpt-4.1", 1) + `,"temperature":0`,
		},
		"a limit of the answer and the key of the session": {
			change: func(r *model.Request) { r.Params.MaxOutputTokens, r.CacheKey = 1000, "run-7" },
			want:   plain + `,"max_output_tokens":1000,"prompt_cache_key":"run-7"`,
		},
		"a compatible server knows no key of the session": {
			change: func(r *model.Request) { r.CacheKey = "run-7" },
			mod:    func(o *openai.Options) { o.Provider, o.Endpoint = openai.ProviderOpenAICompatible, "http://h/v1" },
			want:   plain,
		},
		"extra parameters over all": {
			change: func(r *model.Request) {
				r.Params.Reasoning, r.Params.Extra = model.ReasoningLow, json.RawMessage(`{"reasoning":{"effort":"xhigh"},"include":null,"service_tier":"flex"}`)
			},
			want: strings.Replace(plain, `"include":["reasoning.encrypted_content"],`, "", 1) + `,"reasoning":{"effort":"xhigh","summary":"auto"},"service_tier":"flex"`,
		},
		"the name of a deployment": {
			mod: func(o *openai.Options) {
				o.Provider, o.Endpoint, o.Deployment = openai.ProviderAzure, "https://x.openai.azure.com", "team-a"
			},
			want: strings.Replace(plain, "gpt-5.6", "team-a", 1),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			req := *wiretest.Ask
			if tc.change != nil {
				tc.change(&req)
			}
			mods := []func(*openai.Options){}
			if tc.mod != nil {
				mods = append(mods, tc.mod)
			}
			if diff := differs(t, "{"+tc.want+"}", body(t, &req, mods...)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestWhereARequestGoes(t *testing.T) {
	cases := map[string]struct {
		mod           func(*openai.Options)
		url, key, err string
	}{
		"OpenAI": {url: "https://api.openai.com/v1/responses", key: "Bearer sk-1"},
		"Azure": {
			mod: func(o *openai.Options) { o.Provider, o.Endpoint = openai.ProviderAzure, "https://x.openai.azure.com/" },
			url: "https://x.openai.azure.com/openai/v1/responses", key: "sk-1",
		},
		"Azure, of a date": {
			mod: func(o *openai.Options) {
				o.Provider, o.Endpoint, o.Deployment, o.APIVersion = openai.ProviderAzure, "https://x.openai.azure.com", "a", "2025-04-01-preview"
			},
			url: "https://x.openai.azure.com/openai/responses?api-version=2025-04-01-preview", key: "sk-1",
		},
		"a whole address": {
			mod: func(o *openai.Options) {
				o.Provider, o.Endpoint = openai.ProviderOpenAICompatible, "http://h/v1/responses?a=b"
			},
			url: "http://h/v1/responses?a=b", key: "Bearer sk-1",
		},
		"a provider without the API": {
			mod: func(o *openai.Options) { o.Provider = openai.ProviderKimi }, err: `provider Kimi does not have the API "Responses": it has ChatCompletions`,
		},
		"an API that is none": {
			mod: func(o *openai.Options) { o.API = "Messages" }, err: `the API "Messages" is not one of ChatCompletions, Responses`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var url, key string
			o := openai.Options{Provider: openai.ProviderOpenAI, API: "Responses", Model: "m", Transport: wiretest.RoundTrip(func(r *http.Request) (*http.Response, error) {
				url, key = r.URL.String(), r.Header.Get("Authorization")+r.Header.Get("Api-Key")
				return nil, errors.New("enough")
			})}
			wiretest.WithKey("sk-1")(&o)
			if tc.mod != nil {
				tc.mod(&o)
			}
			m, err := openai.New(o)
			if tc.err != "" {
				if err == nil || err.Error() != tc.err {
					t.Errorf("got %v, want %s", err, tc.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			_, _ = model.Collect(m.Stream(t.Context(), wiretest.Ask), nil)
			if url != tc.url || key != tc.key {
				t.Errorf("asked %s with %q", url, key)
			}
		})
	}
}

func TestInput(t *testing.T) {
	const user = `{"type":"message","role":"user","content":"Hello?"},`
	part := func(kind step.PartKind, text, data string) step.Part {
		p := step.Part{Kind: kind, Text: text}
		if data != "" {
			p.Provider = json.RawMessage(data)
		}
		return p
	}
	thought := part(step.PartThinking, "Hm.", `{"type":"reasoning","encrypted_content":"e","summary":[{"type":"summary_text","text":"Hm."}]}`)
	const reasoning = `{"type":"reasoning","encrypted_content":"e","summary":[{"type":"summary_text","text":"Hm."}]}`
	said := func(text, phase string) string {
		return `{"type":"message","role":"assistant",` + phase + `"content":[{"type":"output_text","text":"` + text + `"}]}`
	}
	called := func(id, args string) string {
		return `{"type":"function_call","call_id":"` + id + `","name":"Ls","arguments":"` + args + `"}`
	}
	output := func(id, text string) string {
		return `{"type":"function_call_output","call_id":"` + id + `","output":"` + text + `"}`
	}
	calls := func(n int) []step.Call {
		var list []step.Call
		for i := range n {
			list = append(list, step.Call{ID: step.CallID("", 2, i+1), Name: "Ls", Args: json.RawMessage(`{}`)})
		}
		return list
	}
	cases := map[string]struct {
		parts []step.Part
		calls []step.Call
		by    string
		want  string
	}{
		"a message keeps its phase": {
			parts: []step.Part{part(step.PartText, "Hi.", `{"type":"message","phase":"final_answer"}`)}, want: said("Hi.", `"phase":"final_answer",`),
		},
		"a message without one has none": {parts: []step.Part{part(step.PartText, "Hi.", "")}, want: said("Hi.", "")},
		"reasoning goes with the message after it": {
			parts: []step.Part{thought, part(step.PartText, "Hi.", "")}, want: reasoning + "," + said("Hi.", ""),
		},
		"reasoning goes with the call after it": {
			parts: []step.Part{thought, part(step.PartCall, "", `{"type":"function_call","call_id":"call_a"}`)}, calls: calls(1),
			want: reasoning + "," + called("call_a", "{}") + "," + output("call_a", "found s2c1"),
		},
		"reasoning without anything after it does not go": {
			parts: []step.Part{part(step.PartText, "Hi.", ""), thought}, want: said("Hi.", ""),
		},
		"reasoning alone does not go": {parts: []step.Part{thought}, want: said("(no output)", "")},
		"reasoning before an item that is not sent does not go": {
			parts: []step.Part{thought, part(step.PartOpaque, "", `{"type":"web_search_call"}`), thought, part(step.PartText, "Hi.", "")},
			want:  reasoning + "," + said("Hi.", ""),
		},
		"thinking without encrypted content does not go": {
			parts: []step.Part{part(step.PartThinking, "Hm.", ""), part(step.PartText, "Hi.", "")}, want: said("Hi.", ""),
		},
		"thinking of another API does not go": {
			parts: []step.Part{part(step.PartThinking, "Hm.", `{"field":"reasoning"}`), part(step.PartThinking, "Hm.", `[{"type":"thinking"}]`), part(step.PartText, "Hi.", `{"citations":[]}`)},
			want:  said("Hi.", ""),
		},
		"the items of an answer keep their order": {
			parts: []step.Part{
				part(step.PartCall, "", `{"call_id":"call_a"}`), thought, part(step.PartText, "A", `{"phase":"commentary"}`), part(step.PartText, "B", ""),
				part(step.PartCall, "", `{"call_id":"call_b"}`),
			},
			calls: calls(3),
			want: called("call_a", "{}") + "," + reasoning + "," + said("A", `"phase":"commentary",`) + "," + said("B", "") + "," + called("call_b", "{}") + "," + called("s0002c003", "{}") +
				"," + output("call_a", "found s2c1") + "," + output("call_b", "found s2c2") + "," + output("s0002c003", "found s2c3"),
		},
		"an id that comes again is not sent twice": {
			parts: []step.Part{part(step.PartCall, "", `{"call_id":"call_a"}`), part(step.PartCall, "", `{"call_id":"call_a"}`)}, calls: calls(2),
			want: called("call_a", "{}") + "," + called("s0002c002", "{}") + "," + output("call_a", "found s2c1") + "," + output("s0002c002", "found s2c2"),
		},
		"another Model's answer has texts and calls": {
			by:    "other",
			parts: []step.Part{thought, part(step.PartText, "Hi.", `{"phase":"commentary"}`), part(step.PartCall, "", `{"call_id":"call_a"}`), part(step.PartText, "Ho.", "")},
			calls: calls(1),
			want:  said("Hi.", "") + "," + called("s0002c001", "{}") + "," + said("Ho.", "") + "," + output("s0002c001", "found s2c1"),
		},
		"an empty answer is said in words": {want: said("(no output)", "")},
		"arguments that are not JSON go as they were written": {
			calls: []step.Call{{ID: "s2c1", Name: "Ls", Args: json.RawMessage(`"{\"path\""`)}},
			want:  called("s0002c001", `{\"path\"`) + "," + output("s0002c001", "found s2c1"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := step.Step{Seq: 2, Role: step.RoleAssistant, Model: "m", Parts: tc.parts, Calls: tc.calls}
			if tc.by != "" {
				s.Model = tc.by
			}
			steps := append([]step.Step{wiretest.Says(step.RoleUser, "Hello?"), s}, results(s)...)
			if diff := differs(t, "["+user+tc.want+"]", input(t, &model.Request{Steps: steps})); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// A call without a result gets one: OpenAI refuses a call without.
func TestEachCallHasAResult(t *testing.T) {
	s := step.Step{Seq: 2, Role: step.RoleAssistant, Calls: []step.Call{{ID: "s2c1", Name: "Ls", Args: json.RawMessage(`{}`)}}}
	items := input(t, &model.Request{Steps: []step.Step{wiretest.Says(step.RoleUser, ""), s, wiretest.Says(step.RoleUser, "Well?")}})
	if len(items) != 4 || items[0]["content"] != "(no output)" || items[2]["output"] != "(no output)" {
		t.Errorf("sent %v", items)
	}
}

// refusing answers requests with errors, one after the other, and then with a text. It returns
// what it was sent.
func refusing(t *testing.T, bodies ...string) (wiretest.RoundTrip, *[]map[string]any) {
	t.Helper()
	var sent []map[string]any
	return func(r *http.Request) (*http.Response, error) {
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			t.Error(err)
		}
		sent = append(sent, body)
		if n := len(sent); n <= len(bodies) {
			return wiretest.Answering(http.StatusBadRequest, "application/json", `{"error":`+bodies[n-1]+`}`)(r)
		}
		return answering(stream(1))(r)
	}, &sent
}

func TestARefusedRequestIsRepaired(t *testing.T) {
	thought := step.Part{Kind: step.PartThinking, Provider: json.RawMessage(`{"type":"reasoning","encrypted_content":"e","summary":[]}`)}
	steps := []step.Step{
		wiretest.Says(step.RoleUser, "Hello?"),
		{Seq: 2, Role: step.RoleAssistant, Model: "m", Parts: []step.Part{thought, {Kind: step.PartText, Text: "Hi.", Provider: json.RawMessage(`{"phase":"final_answer"}`)}}},
		wiretest.Says(step.RoleUser, "Well?"),
	}
	cases := map[string]struct {
		refusal string
		repair  model.RepairKind
		without string
	}{
		"encrypted content of another account": {
			`{"message":"The encrypted content gAAA could not be verified. Reason: Encrypted content could not be decrypted or parsed.","code":"invalid_encrypted_content"}`,
			model.RepairReasoning, `"encrypted_content"`,
		},
		"reasoning out of its place": {
			`{"message":"Item 'rs_1' of type 'reasoning' was provided without its required following item.","type":"invalid_request_error","param":"input"}`,
			model.RepairReasoning, `"encrypted_content"`,
		},
		"a call without its reasoning": {
			`{"message":"Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item: 'rs_1'.","param":"input"}`,
			model.RepairReasoning, `"encrypted_content"`,
		},
		"a server that does not know phases": {
			`{"message":"Unknown parameter: 'input[1].phase'.","param":"input[1].phase"}`, model.RepairField, `"phase"`,
		},
		"an organization that may not see summaries": {
			`{"message":"Your organization must be verified to generate reasoning summaries.","param":"reasoning.summary","code":"unsupported_value"}`, model.RepairField, `"auto"`,
		},
		"a model without summaries": {
			`{"message":"Unsupported parameter: 'reasoning.summary' is not supported with this model.","param":"reasoning.summary"}`, model.RepairField, `"auto"`,
		},
		"a model without reasoning": {
			`{"message":"Encrypted content is not supported with this model.","param":"include"}`, model.RepairField, `"include"`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			network, sent := refusing(t, tc.refusal)
			repairs := asked(t, at(t, network), &model.Request{Steps: steps, CacheKey: "k", Params: model.Params{Reasoning: model.ReasoningHigh}})
			if len(*sent) != 3 || len(repairs) != 1 || repairs[0] != tc.repair {
				t.Fatalf("%d requests, repairs %v", len(*sent), repairs)
			}
			for i, body := range *sent {
				data, _ := json.Marshal(body)
				if got := strings.Contains(string(data), tc.without); got != (i == 0) {
					t.Errorf("request %d: %s is in it: %t\n%s", i, tc.without, got, data)
				}
			}
		})
	}
}

// asked asks a Model twice, and returns the repairs that it made.
func asked(t *testing.T, m model.Model, req *model.Request) []model.RepairKind {
	t.Helper()
	var repairs []model.RepairKind
	for range 2 {
		_, err := model.Collect(m.Stream(t.Context(), req), func(d model.Delta) {
			if d.Repair != nil {
				repairs = append(repairs, d.Repair.Kind)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return repairs
}

// What a user has set is not changed.
func TestARefusedSettingIsReported(t *testing.T) {
	network, sent := refusing(t, `{"message":"Unsupported value: 'reasoning.effort' does not support 'high' with this model.","param":"reasoning.effort"}`)
	_, err := model.Collect(at(t, network).Stream(t.Context(), &model.Request{Steps: wiretest.Ask.Steps, Params: model.Params{Reasoning: model.ReasoningHigh}}), nil)
	bad, _ := errors.AsType[*model.BadRequestError](err)
	if bad == nil || bad.Cause != model.CauseParameter || bad.Setting != "inference.reasoning" || len(*sent) != 1 {
		t.Errorf("%d requests, %v", len(*sent), err)
	}
}
