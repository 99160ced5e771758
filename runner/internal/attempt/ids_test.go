package attempt

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// loggedIDs are the ids in the events of a log, in order and each once.
func loggedIDs(t *testing.T, log string) []string {
	t.Helper()
	var ids []string
	for line := range strings.Lines(log) {
		var e events.Line
		if json.Unmarshal([]byte(line), &e) != nil {
			continue
		}
		var data struct{ ID, Name string }
		switch e.Type {
		case step.EventStepStarted, step.EventCallStarted, step.EventPending, step.EventDecided:
			if err := json.Unmarshal(e.Data, &data); err != nil {
				t.Fatal(err)
			}
		default:
			continue
		}
		if id := data.ID; id == "" {
			ids = append(ids, data.Name) // of a Decision
		} else if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// A user who is asked about a call finds it in the log and in the status by the id in the request and in
// the name of the Decision.
func TestAnIDIsTheSameInLogStatusRequestAndDecision(t *testing.T) {
	const digits = "-44d72abae8cca3ca55ff6d7a41f02535"
	eachExchange(t, func(t *testing.T, e exchange) {
		p := e.pod(1)
		writeFile(t, p.SignalsFile, "")
		var asked, last task.Progress
		p.api.answer = func(_ int, said task.Progress) (int, string) {
			if last = said; len(said.Pending) > 0 && len(asked.Pending) == 0 {
				asked = said
				text, err := os.ReadFile(filepath.Clean(e.path("signals.json")))
				if err != nil {
					t.Error(err)
				}
				writeFile(t, p.SignalsFile, string(text))
			}
			return http.StatusOK, ""
		}
		if code := p.run(p.withDriver(answers(1))); code != task.ExitCommitted {
			t.Fatalf("exit code %d: %+v", code, p.termination(t))
		}
		if diff := cmp.Diff([]string{"s2", "s2c1" + digits, "x.s2c1" + digits, "s2c1", "s4"}, loggedIDs(t, p.allOutput(t))); diff != "" {
			t.Errorf("ids in the log -want +got:\n%s", diff)
		}
		var recent []string
		for _, r := range last.Recent {
			recent = append(recent, r.Kind+" "+r.ID)
		}
		if diff := cmp.Diff([]string{"Model s2", "Tool s2c1", "Model s4"}, recent); diff != "" {
			t.Errorf("progress.recent -want +got:\n%s", diff)
		}
		if asked.Pending[0].ID != "s2c1"+digits || last.Decided[0].Name != "x.s2c1"+digits {
			t.Errorf("asked %+v, decided %+v", asked.Pending, last.Decided)
		}
	})
}
