package openai_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/model/wiretest"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
	"github.com/deckhand-dev/deckhand/runner/model/openai"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// Dialects are held to the whole suite: what is special about one takes nothing
// from the rest. TestConformance has the compatible one; OpenAI lets a model read
// its own broken arguments, which the suite, like most providers, refuses.
func TestDialectsConform(t *testing.T) {
	for _, name := range []string{"azure", "kimi", "ollama"} {
		r := rows[name]
		t.Run(name, func(t *testing.T) {
			modeltest.Run(t, func(t *testing.T, baseURL string) model.Model {
				o := r.options
				o.Endpoint, o.Model, o.Deployment = baseURL, modeltest.ModelName, ""
				o.Key = func() (string, error) { return modeltest.Key, nil }
				m, err := openai.New(o)
				if err != nil {
					t.Fatal(err)
				}
				return m
			})
		})
	}
}

func TestAddressOfAzure(t *testing.T) {
	const here = "https://name.openai.azure.com"
	cases := map[string]struct {
		options openai.Options
		want    string
	}{
		"a resource has the newer API":                   {openai.Options{Endpoint: here}, here + "/openai/v1/chat/completions"},
		"its address may be written whole":               {openai.Options{Endpoint: here + "/openai/v1/"}, here + "/openai/v1/chat/completions"},
		"a version asks for a deployment":                {openai.Options{Endpoint: here, Deployment: "d", APIVersion: "2024-10-21"}, here + "/openai/deployments/d/chat/completions?api-version=2024-10-21"},
		"a deployment is named like its model":           {openai.Options{Endpoint: here + "/openai", APIVersion: "2024-10-21"}, here + "/openai/deployments/m/chat/completions?api-version=2024-10-21"},
		"the whole of a deployment's address":            {openai.Options{Endpoint: here + "/openai/deployments/x/chat/completions?api-version=1", APIVersion: "2"}, here + "/openai/deployments/x/chat/completions?api-version=1"},
		"a deployment's address without the chat":        {openai.Options{Endpoint: here + "/openai/deployments/x", APIVersion: "2024-10-21"}, here + "/openai/deployments/x/chat/completions?api-version=2024-10-21"},
		"a gateway in front of it":                       {openai.Options{Endpoint: "https://gw/team?sub=1", Deployment: "d", APIVersion: "v&x"}, "https://gw/team/openai/deployments/d/chat/completions?sub=1&api-version=v%26x"},
		"a deployment cannot lead to another place":      {openai.Options{Endpoint: here, Deployment: "../../x?y#z", APIVersion: "1"}, here + "/openai/deployments/..%2F..%2Fx%3Fy%23z/chat/completions?api-version=1"},
		"a version preview is for the newer API's query": {openai.Options{Endpoint: here + "?api-version=preview"}, here + "/openai/v1/chat/completions?api-version=preview"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			asked := ""
			_, _ = collect(t, wiretest.RoundTrip(func(r *http.Request) (*http.Response, error) {
				asked = r.URL.String()
				return nil, http.ErrAbortHandler
			}), func(o *openai.Options) {
				network := o.Transport
				*o = tc.options
				o.Provider, o.Model, o.Transport = openai.ProviderAzure, "m", network
			})
			if asked != tc.want {
				t.Errorf("asked %s, want %s", asked, tc.want)
			}
		})
	}
	_, err := openai.New(openai.Options{Provider: openai.ProviderAzure, Model: "m"})
	if err == nil || !strings.Contains(err.Error(), "https://name.openai.azure.com") {
		t.Errorf("without an endpoint: %v", err)
	}
}

// No recording of Kimi's own endpoint exists; these are streams as its
// documentation has them.
func TestKimiAnswers(t *testing.T) {
	kimi := func(o *openai.Options) { o.Provider, o.Model = openai.ProviderKimi, "kimi-k2.6" }
	envelope := func(choice string) string {
		return `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"kimi-k2.6","choices":[` + choice + `],"system_fingerprint":"fpv0_1"}` + "\n"
	}
	whole := []string{
		envelope(`{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}`),
		envelope(`{"index":0,"delta":{"reasoning_content":"Look first."},"finish_reason":null}`),
		envelope(`{"index":0,"delta":{"content":"I look."},"finish_reason":null}`),
		envelope(`{"index":0,"delta":{"tool_calls":[{"index":0,"id":"functions.Ls:0","type":"function","function":{"name":"Ls","arguments":""}}]},"finish_reason":null}`),
		envelope(`{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"path\":\".\"}"}}]},"finish_reason":null}`),
		envelope(`{"index":0,"delta":{"tool_calls":[{"index":1,"id":"functions.Ls:1","type":"function","function":{"name":"Ls","arguments":"{}"}}]},"finish_reason":null}`),
		envelope(`{"index":0,"delta":{},"finish_reason":"tool_calls","usage":{"prompt_tokens":100,"completion_tokens":20,"total_tokens":120,"cached_tokens":64}}`),
		"data: [DONE]\n",
	}
	want := model.Response{
		Parts:  []step.Part{{Kind: step.PartThinking, Text: "Look first."}, {Kind: step.PartText, Text: "I look."}},
		Calls:  []model.Call{{Name: "Ls", Args: `{"path":"."}`}, {Name: "Ls", Args: "{}"}},
		Finish: step.FinishCalls,
		Usage:  step.Usage{InputTokens: 100, CacheReadTokens: 64, OutputTokens: 20},
	}
	got, err := collect(t, streaming(whole...), kimi)
	if diff := gocmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("error %v, -want +got:\n%s", err, diff)
	}
	t.Run("cut anywhere it is incomplete, or whole", func(t *testing.T) {
		all := strings.Join(whole, "\n")
		for end := range len(all) {
			got, err := collect(t, wiretest.Answering(http.StatusOK, "text/event-stream", all[:end]), kimi)
			got.Usage = step.Usage{}
			if want := want; err == nil {
				want.Usage = step.Usage{}
				if diff := gocmp.Diff(want, got); diff != "" {
					t.Errorf("cut at %d it is taken for whole: -want +got:\n%s", end, diff)
				}
			} else if !model.Transient(err) {
				t.Errorf("cut at %d: %v", end, err)
			}
		}
	})
	for status, kind := range map[int]string{500: "server_error", 502: "bad_gateway", 503: "engine_overloaded_error", 504: "timeout", 429: "rate_limit_reached_error"} {
		_, err := collect(t, wiretest.Answering(status, "application/json", `{"error":{"message":"The engine is currently overloaded","type":"`+kind+`"}}`), kimi)
		if !model.Transient(err) {
			t.Errorf("status %d: %v is not transient", status, err)
		}
	}
}

// A connection that breaks in the middle of Kimi's answer is tried again by who
// asked; what was spent is told.
func TestKimiHangsUp(t *testing.T) {
	turn := modeltest.Turn{Text: strings.Repeat("word ", 100), Faults: []modeltest.Fault{
		{Kind: modeltest.FaultReset, After: 700}, {Kind: modeltest.FaultStatus, Status: 503, RetryAfter: "1"},
	}}
	server := httptest.NewServer(modeltest.NewServer(modeltest.Script{Models: map[string]modeltest.Dialogue{"kimi-k2.6": {Turns: []modeltest.Turn{turn}}}}))
	t.Cleanup(server.Close)
	m, err := openai.New(openai.Options{Provider: openai.ProviderKimi, Model: "kimi-k2.6", Endpoint: server.URL + "/v1"})
	if err != nil {
		t.Fatal(err)
	}
	r, err := model.Collect(m.Stream(t.Context(), wiretest.Ask), nil)
	if !model.Transient(err) || r.Finish != "" || !r.Usage.Estimated {
		t.Errorf("after the cut: %+v, %v", r, err)
	}
	if _, err = model.Collect(m.Stream(t.Context(), wiretest.Ask), nil); !model.Transient(err) {
		t.Errorf("then: %v", err)
	}
	if r, err = model.Collect(m.Stream(t.Context(), wiretest.Ask), nil); err != nil || text(r, step.PartText) != turn.Text {
		t.Errorf("in the end: %+v, %v", r, err)
	}
}

// Thinking in the text is thinking where models do that, and goes nowhere again.
func TestInlineThinking(t *testing.T) {
	cases := map[string]struct {
		provider, thinking, text string
	}{
		"at Ollama":           {openai.ProviderOllama, "Hm.", "Hi <think>."},
		"at a compatible one": {openai.ProviderOpenAICompatible, "Hm.", "Hi <think>."},
		"not at OpenAI":       {openai.ProviderOpenAI, "", "<think>Hm.</think>\nHi <think>."},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			as := func(o *openai.Options) { o.Provider = tc.provider }
			r, err := collect(t, streaming(
				delta(`{"content":"<th"}`), delta(`{"content":"ink>Hm.</thi"}`), delta(`{"content":"nk>\nHi <think>."}`),
				tool(`{"index":0,"id":"x","function":{"name":"Ls","arguments":"{}"}}`), calls, done,
			), as)
			if err != nil || text(r, step.PartThinking) != tc.thinking || text(r, step.PartText) != tc.text {
				t.Fatalf("error %v, answer %+v", err, r)
			}
			recorded := asks("s2c1", "Ls", "{}", r.Parts...)
			if again := body(t, &model.Request{Steps: []step.Step{recorded, answers("s2c1", "a")}}, as); strings.Contains(again, "reasoning") {
				t.Errorf("sent again: %s", again)
			}
		})
	}
}
