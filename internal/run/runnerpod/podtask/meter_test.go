package podtask

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// What an attempt reports of its counts is what the next one begins with, also if the journal is
// lost with its pod.
func TestTheNextAttemptHasAllCountsOfTheLast(t *testing.T) {
	want := step.Meter{Steps: 1, ModelCalls: 9, OutageCalls: 2, ToolCalls: 3, ToolErrors: 4, Errors: 5, Repairs: 6}
	reported, err := json.Marshal(task.Progress{Counts: task.CountsOf(want)})
	if err != nil {
		t.Fatal(err)
	}
	var stored v1alpha1.RunProgress
	if err := json.Unmarshal(reported, &stored); err != nil {
		t.Fatal(err)
	}
	got := meterOf(stored)
	got.Usage = step.Usage{}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-reported +next attempt:\n%s", diff)
	}
}
