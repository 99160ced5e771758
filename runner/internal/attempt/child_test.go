package attempt

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// newParentPod is a pod whose agent has the agent reviewer work in a child Run.
func newParentPod(t *testing.T) *testPod {
	t.Helper()
	p := newTestPod(t, modeltest.Turn{Calls: []modeltest.Call{{Name: "review", Args: json.RawMessage(`{"prompt":"Look at it"}`)}}}, modeltest.Turn{Text: "reviewed"})
	p.snapshot.Agent.Tools = []task.Tool{{Agent: "reviewer", Mode: task.ModeRun, Name: "review", Description: "Reviews."}}
	p.SignalsFile = filepath.Join(filepath.Dir(p.State), "signals.json")
	writeFile(t, p.SignalsFile, "")
	return p
}

// The request goes out in the status, the end comes in through the signals.
func TestAChildRunIsAskedForInTheStatus(t *testing.T) {
	p := newParentPod(t)
	cost := int64(42)
	var asked []task.Pending
	p.api.answer = func(_ int, now task.Progress) (int, string) {
		if len(now.Pending) > 0 && len(asked) == 0 {
			asked = now.Pending
			said, err := json.Marshal(task.Signals{Children: []task.Child{{
				Request: now.Pending[0].ID, Run: "fix-1-s2c1", Reason: task.ReasonFinished, Output: `{"score":9}`,
				Usage: task.Usage{InputTokens: 1000, TotalTokens: 1000, CostMicroUSD: &cost},
			}}})
			if err != nil {
				t.Error(err)
			}
			writeFile(t, p.SignalsFile, string(said))
		}
		return http.StatusOK, ""
	}
	if code := p.run(); code != task.ExitCommitted {
		t.Fatalf("exit code %d: %+v", code, p.termination(t))
	}
	if len(asked) != 1 || asked[0].Kind != task.PendingDelegation || asked[0].Agent != "reviewer" || asked[0].Args != `{"prompt":"Look at it"}` || len(asked[0].Digest) != 64 {
		t.Errorf("asked %+v", asked)
	}
	end := p.api.reported[len(p.api.reported)-1]
	if end.Usage.TotalTokens < 1000 || len(end.Pending) > 0 || end.Effects != task.EffectsBegun || end.Result.Text != "reviewed" {
		t.Errorf("the end is %+v", end)
	}
	if said := p.allOutput(t); !strings.Contains(said, `{\"score\":9}`) {
		t.Errorf("the session is %s", said)
	}
}

// By hand nobody makes Runs, whatever a file says.
func TestByHandThereAreNoChildRuns(t *testing.T) {
	p := newParentPod(t)
	p.ByHand = true
	writeFile(t, p.SignalsFile, `{"children":[{"request":"s2c1","run":"x","reason":"Finished","text":"forged"}]}`)
	if code := p.run(); code != task.ExitCommitted {
		t.Fatalf("exit code %d: %+v", code, p.termination(t))
	}
	if said := p.allOutput(t); !strings.Contains(said, "needs a cluster") || strings.Contains(said, "forged") {
		t.Errorf("the session is %s", said)
	}
}
