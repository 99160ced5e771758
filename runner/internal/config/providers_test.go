package config

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/model/wiretest"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/anthropic"
	"github.com/deckhand-dev/deckhand/runner/model/provider"
	"github.com/deckhand-dev/deckhand/runner/registry"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// The timeouts of a Model reach each provider.
func TestTimeoutsReachTheProviders(t *testing.T) {
	t.Parallel()
	over := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-over
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(over) })
	for name, factory := range providers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := factory(t.Context(), registry.ModelSpec{Model: task.Model{
				Name: "m", Provider: name, Model: "m", Endpoint: server.URL, Timeouts: task.ModelTimeouts{FirstByteSeconds: 1},
			}})
			if err != nil {
				t.Fatal(err)
			}
			_, err = model.Collect(m.Stream(t.Context(), wiretest.Ask), nil)
			got, _ := errors.AsType[*model.TimeoutError](err)
			if diff := cmp.Diff(&model.TimeoutError{Field: model.TimeoutFirstByte, After: time.Second}, got); diff != "" {
				t.Errorf("%v, -want +got:\n%s", err, diff)
			}
		})
	}
}

// The API of a Model reaches its provider, which refuses one that it does not have.
func TestTheAPIOfAModel(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		spec      task.Model
		path, err string
	}{
		"none":                               {task.Model{Provider: "OpenAI"}, "/chat/completions", ""},
		"Responses":                          {task.Model{Provider: "OpenAI", API: "Responses"}, "/responses", ""},
		"ChatCompletions":                    {task.Model{Provider: "OpenAI", API: "ChatCompletions"}, "/chat/completions", ""},
		"Responses at a compatible server":   {task.Model{Provider: "OpenAICompatible", API: "Responses"}, "/responses", ""},
		"Messages at a provider of both":     {task.Model{Provider: "DeepSeek", API: "Messages"}, "/v1/messages", ""},
		"the format of before":               {task.Model{Provider: "Kimi", Format: "Anthropic"}, "/v1/messages", ""},
		"an API over the format of before":   {task.Model{Provider: "Kimi", API: "ChatCompletions", Format: "Anthropic"}, "/chat/completions", ""},
		"Messages at Anthropic":              {task.Model{Provider: "Anthropic", API: "Messages"}, "/v1/messages", ""},
		"Messages at Bedrock":                {task.Model{Provider: "Bedrock", API: "Messages"}, "/model/m/invoke-with-response-stream", ""},
		"Responses at Anthropic":             {task.Model{Provider: "Anthropic", API: "Responses"}, "", `provider Anthropic does not have the API "Responses": it has Messages`},
		"Messages at OpenAI":                 {task.Model{Provider: "OpenAI", API: "Messages"}, "", `the API "Messages" is not one of ChatCompletions, Responses`},
		"Responses at a provider without it": {task.Model{Provider: "DeepSeek", API: "Responses"}, "", `provider DeepSeek does not have the API "Responses": it has ChatCompletions`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := make(chan string, 1)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked <- r.URL.Path
				http.Error(w, "{}", http.StatusBadRequest)
			}))
			t.Cleanup(server.Close)
			tc.spec.Name, tc.spec.Model, tc.spec.Endpoint, tc.spec.RequestRepair = "m", "m", server.URL, task.RepairDisabled
			m, err := providers[tc.spec.Provider](t.Context(), registry.ModelSpec{Model: tc.spec})
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
			if path := <-asked; path != tc.path {
				t.Errorf("asked %s, want %s", path, tc.path)
			}
		})
	}
}

func TestTheAPIOfAModelThatNamesNone(t *testing.T) {
	t.Parallel()
	const resource = "https://x.openai.azure.com"
	for name, tc := range map[string]struct {
		model task.Model
		want  string
	}{
		"OpenAI":                              {task.Model{Provider: "OpenAI", Model: "gpt-4.1"}, "Responses"},
		"OpenAI's endpoint":                   {task.Model{Provider: "OpenAI", Endpoint: "https://api.openai.com/v1/"}, "Responses"},
		"OpenAI, with an API":                 {task.Model{Provider: "OpenAI", API: "ChatCompletions"}, "ChatCompletions"},
		"OpenAI, with the address of an API":  {task.Model{Provider: "OpenAI", Endpoint: "https://api.openai.com/v1/chat/completions"}, ""},
		"OpenAI, with fields of its requests": {task.Model{Provider: "OpenAI", Params: step.Params{Extra: json.RawMessage(`{"seed":1}`)}}, ""},
		"OpenAI in a region":                  {task.Model{Provider: "OpenAI", Endpoint: "https://eu.api.openai.com/v1"}, "Responses"},
		"a gateway to OpenAI":                 {task.Model{Provider: "OpenAI", Endpoint: "https://api.openai.com.example/v1"}, ""},
		"Azure with a model that reasons":     {task.Model{Provider: "Azure", Endpoint: resource, Model: "o4-mini"}, "Responses"},
		"Azure with a later model":            {task.Model{Provider: "Azure", Endpoint: resource + "/openai/v1", Model: "gpt-5.6-mini"}, "Responses"},
		"Azure with an older model":           {task.Model{Provider: "Azure", Endpoint: resource, Model: "gpt-4o"}, ""},
		"Azure with another model":            {task.Model{Provider: "Azure", Endpoint: resource, Model: "olmo"}, ""},
		"Azure with a version":                {task.Model{Provider: "Azure", Endpoint: resource, Model: "gpt-5", APIVersion: "2024-10-21"}, ""},
		"Azure with a version in the address": {task.Model{Provider: "Azure", Endpoint: resource + "?api-version=2024-10-21", Model: "gpt-5"}, ""},
		"Azure with a deployment":             {task.Model{Provider: "Azure", Endpoint: resource + "/openai/deployments/d/chat/completions?api-version=1", Model: "gpt-5"}, ""},
		"Azure with a deployment alone":       {task.Model{Provider: "Azure", Endpoint: resource + "/openai/deployments/d", Model: "gpt-5"}, ""},
		"a compatible server":                 {task.Model{Provider: "OpenAICompatible", Endpoint: "https://api.openai.com/v1", Model: "gpt-5"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := apiOf(tc.model); got != tc.want {
				t.Errorf("the API is %q, want %q", got, tc.want)
			}
		})
	}
}

// What an agent merges into requests was written for chat completions.
func TestFieldsOfAnAgentKeepChatCompletions(t *testing.T) {
	extra := step.Params{Extra: json.RawMessage(`{"reasoning_effort":"high"}`)}
	for name, tc := range map[string]struct {
		model    task.Model
		snapshot task.Snapshot
		want     string
	}{
		"no agent merges fields":    {task.Model{Provider: "OpenAI"}, task.Snapshot{Agents: []task.Agent{{}}}, ""},
		"the agent does":            {task.Model{Provider: "OpenAI"}, task.Snapshot{Agent: task.Agent{Params: extra}}, "ChatCompletions"},
		"an agent that it calls":    {task.Model{Provider: "Azure"}, task.Snapshot{Agents: []task.Agent{{}, {Params: extra}}}, "ChatCompletions"},
		"the Model names its API":   {task.Model{Provider: "OpenAI", API: "Responses"}, task.Snapshot{Agent: task.Agent{Params: extra}}, "Responses"},
		"the Model is of Anthropic": {task.Model{Provider: "Anthropic"}, task.Snapshot{Agent: task.Agent{Params: extra}}, ""},
	} {
		if got := withAPI(tc.model, tc.snapshot).API; got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

// The page of models begins the APIs of a provider with the one that a Model has which names none.
func TestThePageNamesTheDefaultAPIOfEachProvider(t *testing.T) {
	page, err := os.ReadFile("../../../docs/models.md")
	if err != nil {
		t.Fatal(err)
	}
	words := map[string]string{"": "chat completions", provider.APIResponses: "Responses", provider.APIMessages: "Messages"}
	for name := range providers {
		api := apiOf(task.Model{Provider: name, Model: "gpt-5"})
		if slices.Contains([]string{anthropic.ProviderAnthropic, anthropic.ProviderAnthropicCompatible, anthropic.ProviderBedrock}, name) {
			api = provider.APIMessages
		}
		row := regexp.MustCompile("(?m)^\\| `" + name + "` \\| ([^|]*)\\|").FindSubmatch(page)
		if row == nil || !strings.HasPrefix(string(row[1]), words[api]) {
			t.Errorf("the row of %s has the APIs %q, want %s first", name, row, words[api])
		}
	}
}
