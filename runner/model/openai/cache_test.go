package openai_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
	"github.com/deckhand-dev/deckhand/runner/model/openai"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// Over 50 steps nine tenths of the input come out of the provider's cache, as a
// server counts that compares what it is sent with what it was sent before.
func TestMostOfASessionIsReadFromTheCache(t *testing.T) {
	for _, name := range []string{"openai", "openrouter-anthropic"} {
		t.Run(name, func(t *testing.T) {
			share, marks := session(t, rows[name].options, 50)
			if share < 90 {
				t.Errorf("%d %% of the input was read from the cache", share)
			}
			if want := map[bool]int64{true: 3}[name == "openrouter-anthropic"]; marks != want {
				t.Errorf("the last request has %d marks, want %d", marks, want)
			}
		})
	}
}

// What a provider said goes back to it in the form in which it said it, and is
// accepted by a server that is as strict as the strictest.
func TestEachDialectHoldsASession(t *testing.T) {
	for name, r := range rows {
		t.Run(name, func(t *testing.T) { session(t, r.options, 3) })
	}
}

// session is a session of n steps with results of 2 KB: how much of its input
// was read from the cache, in percent, and the marks in its last request.
func session(t *testing.T, o openai.Options, n int64) (share, marks int64) {
	t.Helper()
	script := modeltest.NewServer(modeltest.Script{Cache: true, Models: map[string]modeltest.Dialogue{
		modeltest.AnyModel: {Turns: []modeltest.Turn{{Thinking: "Hm.", Calls: []modeltest.Call{{Name: "Ls"}}}}, After: modeltest.Repeat},
	}})
	server := httptest.NewServer(script)
	t.Cleanup(server.Close)
	o.Endpoint, o.Name = server.URL+"/v1", "self"
	m, err := openai.New(o)
	if err != nil {
		t.Fatal(err)
	}
	req := conversation("")
	req.Steps = req.Steps[:1]
	var used step.Usage
	for i := range n {
		r, err := model.Collect(m.Stream(t.Context(), req), nil)
		if err != nil {
			t.Fatal(err)
		}
		used = used.Plus(r.Usage)
		id := step.CallID("", 2*i+2, 1)
		answer := asks(id, r.Calls[0].Name, r.Calls[0].Args, r.Parts...)
		answer.Model = "self"
		req.Steps = append(req.Steps, answer, answers(id, fmt.Sprintf("%d %s", i, strings.Repeat("word ", 400))))
	}
	all := script.Requests()
	return 100 * used.CacheReadTokens / used.InputTokens, int64(strings.Count(string(all[len(all)-1].Raw), "cache_control"))
}
