package main

import (
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// scripted returns a model that gives these answers.
func scripted(t *testing.T, turns ...modeltest.Turn) task.Model {
	t.Helper()
	t.Setenv("OPENAI_API_KEY", "sk-test")
	server := httptest.NewServer(modeltest.NewServer(modeltest.Script{
		Key: "sk-test", Models: map[string]modeltest.Dialogue{modeltest.AnyModel: {Turns: turns}},
	}))
	t.Cleanup(server.Close)
	return task.Model{Provider: "OpenAICompatible", Model: "m", Endpoint: server.URL + "/v1"}
}

func TestAQuestionIsAnswered(t *testing.T) {
	model := scripted(t,
		modeltest.Turn{Calls: []modeltest.Call{{Name: "Stock", Args: []byte(`{"item":"lamp"}`)}}},
		modeltest.Turn{Text: "We have {{.LastToolResult}} lamps."},
	)
	var out strings.Builder
	err := answer(t.Context(), &out, model, "How many lamps do we have?")
	if want := "… Stock {\"item\":\"lamp\"}\nWe have 12 lamps. ("; err != nil || !strings.HasPrefix(out.String(), want) {
		t.Errorf("answer() = %v, and writes %q, want %q", err, out.String(), want)
	}
}

func TestWithoutAKeyTheCauseIsReturned(t *testing.T) {
	model := scripted(t)
	t.Setenv("OPENAI_API_KEY", "")
	var out strings.Builder
	err := answer(t.Context(), &out, model, "How many lamps do we have?")
	end, ok := errors.AsType[*task.EndError](err)
	if !ok || end.Reason != task.ReasonMisconfigured || !strings.Contains(end.Message, "Agent.Key") {
		t.Errorf("answer() = %v", err)
	}
}
