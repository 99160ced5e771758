package attempt

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
	"github.com/deckhand-dev/deckhand/runner/model/openai"
	"github.com/deckhand-dev/deckhand/runner/model/provider"
	"github.com/deckhand-dev/deckhand/runner/registry"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A crashingModel ends the runner when it is asked the last time that is left.
type crashingModel struct {
	model.Model
	left int
}

func (m *crashingModel) Stream(ctx context.Context, req *model.Request) iter.Seq2[model.Delta, error] {
	if m.left--; m.left == 0 {
		panic("boom")
	}
	return m.Model.Stream(ctx, req)
}

// withResponses gives the pod a Model with the Responses API, which crashes when it is asked the
// n-th time.
func (p *testPod) withResponses(n int) option {
	p.snapshot.Models[0].Provider, p.snapshot.Models[0].Driver = "Custom", "responses"
	return withModel("responses", func(_ context.Context, s registry.ModelSpec) (model.Model, error) {
		m, err := openai.New(openai.Options{
			Provider: openai.ProviderOpenAICompatible, API: provider.APIResponses, Name: s.Name, Model: s.Model.Model, Endpoint: s.Endpoint, Key: s.Key,
		})
		return &crashingModel{m, n}, err
	})
}

// A Run whose Model has the Responses API takes 30 steps with reasoning and parallel calls in
// three attempts. Its session is compacted on the way. The server refuses items that are not as
// it sent them.
func TestARunOverResponses(t *testing.T) {
	var turns []modeltest.Turn
	for i := range 40 {
		read := func(n int) modeltest.Call {
			return modeltest.Call{Name: "Read", Args: json.RawMessage(fmt.Sprintf(`{"path":"f%d"}`, n))}
		}
		turns = append(turns, modeltest.Turn{
			Thinking: fmt.Sprintf("Now %d and the next.", i), Text: fmt.Sprintf("I read %d.", i), Calls: []modeltest.Call{read(2 * i), read(2*i + 1)},
		})
	}
	p := newTestPod(t, turns...)
	for i := range 2 * len(turns) {
		writeFile(t, filepath.Join(p.Workspace, fmt.Sprintf("f%d", i)), strings.Repeat(fmt.Sprintf("line of file %d\n", i), 300))
	}
	p.snapshot.Models[0].ContextWindow, p.snapshot.Models[0].MaxOutputTokens = 30_000, 1000
	for attempt, crash := range []int{9, 9} {
		p.task.Attempt = attempt + 1
		if code := p.run(p.withResponses(crash)); code != task.ExitRunnerFailed {
			t.Fatalf("attempt %d: exit code %d, %+v", attempt+1, code, p.termination(t))
		}
	}
	p.task.Attempt = 3
	p.run(p.withResponses(-1))
	last := p.api.reported[len(p.api.reported)-1]
	if last.Result == nil || last.Result.Reason != task.ReasonStepLimit || last.Counts.Steps != 30 || last.Counts.Errors != 2 || last.Counts.Repairs != 0 {
		t.Errorf("ended with %+v, and not with two crashes as the only errors: counts %+v", last.Result, last.Counts)
	}
	sent := p.model.Requests()
	seen := p.allOutput(t)
	if !strings.Contains(seen, `"kind":"hide"`) || !strings.Contains(string(sent[len(sent)-1].Raw), "encrypted_content") {
		t.Errorf("nothing was compacted, or no reasoning was sent back: %s", sent[len(sent)-1].Raw)
	}
}
