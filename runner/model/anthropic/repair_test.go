package anthropic_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/model/wiretest"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/anthropic"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// A refusing endpoint refuses bodies with a text, and answers all others.
type refusing struct {
	refused, why string
	bodies       []string
}

// RoundTrip implements [http.RoundTripper].
func (r *refusing) RoundTrip(req *http.Request) (*http.Response, error) {
	raw, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	r.bodies = append(r.bodies, string(raw))
	if strings.Contains(string(raw), r.refused) {
		refusal, _ := json.Marshal(map[string]any{"type": "error", "error": map[string]any{"type": "invalid_request_error", "message": r.why}})
		return wiretest.Answering(http.StatusBadRequest, "application/json", string(refusal))(req)
	}
	return wiretest.Answering(http.StatusOK, "application/json",
		`{"type":"message","role":"assistant","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`)(req)
}

// askTwice sends a request twice and returns what was repaired.
func askTwice(t *testing.T, m model.Model, req *model.Request) []model.Repair {
	t.Helper()
	var repairs []model.Repair
	for range 2 {
		if _, err := model.Collect(m.Stream(t.Context(), req), func(d model.Delta) {
			if d.Repair != nil {
				repairs = append(repairs, *d.Repair)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	return repairs
}

func TestRefusedRequestsAreRepaired(t *testing.T) {
	called := step.Step{Role: step.RoleAssistant, Model: "main", Calls: []step.Call{{ID: "s2c1", Name: "Ls", Args: json.RawMessage(`{}`)}}}
	result := wiretest.Says(step.RoleTool, "a.txt")
	result.CallID = "s2c1"
	cases := map[string]struct {
		refused string // what of the body is refused, and why
		why     string
		want    string // what the body has instead
		kind    model.RepairKind
	}{
		"marks of the cache":        {`"cache_control"`, "system.0.cache_control: Extra inputs are not permitted", `"system"`, model.RepairField},
		"a limit that is too large": {`"max_tokens":8192`, "max_tokens: 8192 > 4096, which is the maximum allowed number of output tokens", `"max_tokens":4096`, model.RepairOutputLimit},
		"a call without thinking":   {`"content":[{"type":"tool_use"`, "a tool_use block must come with the thinking block of its turn, which is missing", `"type":"thinking"`, model.RepairReasoning},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			network := &refusing{refused: tc.refused, why: tc.why}
			req := &model.Request{System: "Be kind.", Steps: []step.Step{wiretest.Says(step.RoleUser, "Hi"), called, result}}
			m := at(t, network, from(anthropic.ProviderAnthropicCompatible, "some-model"))
			repairs := askTwice(t, m, req)
			if len(network.bodies) != 3 || len(repairs) != 1 || repairs[0].Kind != tc.kind || !strings.Contains(network.bodies[2], tc.want) {
				t.Errorf("repairs %+v, requests:\n%s", repairs, strings.Join(network.bodies, "\n"))
			}
		})
	}
}
