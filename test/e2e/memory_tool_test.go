//go:build e2e

package e2e

import (
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/model/modeltest"
)

// A note below /memories outlives the pod that wrote it.
func TestTheNextAttemptReadsItsMemories(t *testing.T) {
	t.Parallel()
	p := newNamespace(t)
	p.agent("note-writer", onVolume)
	run := p.run("note-writer")
	p.await(run, "has written its note", func(r *v1alpha1.Run) bool {
		return r.Status.Progress != nil && r.Status.Progress.Counts.ToolCalls == 1
	})
	p.killPod(p.pod(run, 1))
	run = p.ends(run, "True Finished")
	if run.Status.Attempt.Number != 2 || run.Status.Disruptions != 1 || run.Status.Failures != 0 {
		t.Errorf("attempt %d, %d failures, %d disruptions", run.Status.Attempt.Number, run.Status.Failures, run.Status.Disruptions)
	}
	if got := run.Status.Progress.Result.Text; !strings.Contains(got, "the tide turns at six") {
		t.Errorf("the model read %q", got)
	}
	if log := p.log(t.Context(), "note-writer-2"); strings.Contains(log, "below /memories before was lost") {
		t.Errorf("the model is told that its notes are gone:\n%s", log)
	}
}

// memoryScripts write notes, and are not answered before their pod is deleted.
var memoryScripts = map[string]modeltest.Dialogue{
	"note-writer": turns(
		does(call("Write", args{"path": "/memories/x", "content": "the tide turns at six"})),
		modeltest.Turn{Calls: []modeltest.Call{call("Read", args{"path": "/memories/x"})}, Faults: []modeltest.Fault{{Kind: modeltest.FaultIdle}}},
		says("I read: {{.LastToolResult}}"),
	),
}
