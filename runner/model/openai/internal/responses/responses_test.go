package responses_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/model/wiretest"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/openai"
	"github.com/deckhand-dev/deckhand/runner/model/provider"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// at is a Model of OpenAI over a network.
func at(t testing.TB, network http.RoundTripper, mods ...func(*openai.Options)) model.Model {
	t.Helper()
	o := openai.Options{Provider: openai.ProviderOpenAI, API: provider.APIResponses, Name: "m", Model: "gpt-5.6", Transport: network}
	for _, mod := range mods {
		mod(&o)
	}
	m, err := openai.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// streaming is an endpoint that answers events.
func streaming(events ...string) wiretest.RoundTrip {
	return wiretest.Answering(http.StatusOK, "text/event-stream", "data: "+strings.Join(events, "\n\ndata: ")+"\n\n")
}

func collect(t testing.TB, network http.RoundTripper, mods ...func(*openai.Options)) (model.Response, error) {
	t.Helper()
	return model.Collect(at(t, network, mods...).Stream(t.Context(), wiretest.Ask), nil)
}

// body is what is sent for a request.
func body(t *testing.T, req *model.Request, mods ...func(*openai.Options)) map[string]any {
	t.Helper()
	var sent map[string]any
	m := at(t, wiretest.RoundTrip(func(r *http.Request) (*http.Response, error) {
		raw, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(raw, &sent); err != nil {
			t.Errorf("%v in %s", err, raw)
		}
		return nil, errors.New("enough")
	}), mods...)
	if _, err := model.Collect(m.Stream(t.Context(), req), nil); sent == nil {
		t.Fatal(err)
	}
	return sent
}

// input is the items that are sent for a request.
func input(t *testing.T, req *model.Request, mods ...func(*openai.Options)) []map[string]any {
	t.Helper()
	var items []map[string]any
	list, _ := body(t, req, mods...)["input"].([]any)
	for _, item := range list {
		items = append(items, item.(map[string]any))
	}
	return items
}

// recorded is an answer as the loop records it.
func recorded(seq int64, name string, r model.Response) step.Step {
	s := step.Step{Seq: seq, Role: step.RoleAssistant, Model: name, Parts: r.Parts, Finish: r.Finish}
	for i, c := range r.Calls {
		args := json.RawMessage(c.Args)
		if !json.Valid(args) {
			args, _ = json.Marshal(c.Args)
		}
		s.Calls = append(s.Calls, step.Call{ID: step.CallID("", seq, i+1), Name: c.Name, Args: args})
	}
	return s
}

// results are the results of the calls of an answer.
func results(s step.Step) []step.Step {
	var list []step.Step
	for _, c := range s.Calls {
		r := wiretest.Says(step.RoleTool, "found "+c.ID)
		r.CallID = c.ID
		list = append(list, r)
	}
	return list
}
