package engine

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/engine/enginetest"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// left is the journal of a runner that was lost while a session below a call
// was at work: of its two calls the second was done.
func (tr *testRun) left(t *testing.T, effect tool.Effect) {
	t.Helper()
	said := func(session string, seq int64, role step.Role, calls ...step.Call) journal.Record {
		st := step.Step{Seq: seq, Role: role, Calls: calls, Parts: []step.Part{{Kind: step.PartText, Text: "go"}}}
		if len(calls) > 0 {
			st.Finish = step.FinishCalls
		}
		return journal.Record{Kind: journal.KindStep, Session: session, Step: &st}
	}
	begun := func(session, id, name string, effect tool.Effect) journal.Record {
		return journal.Record{Kind: journal.KindIntent, Session: session, Intent: &journal.Intent{CallID: id, Name: name, Effect: string(effect)}}
	}
	args := json.RawMessage(`{"agent":"child","prompt":"go"}`)
	for _, r := range []journal.Record{
		said("", 1, step.RoleUser),
		said("", 2, step.RoleAssistant, step.Call{ID: "s2c1", Name: "agent", Args: args}),
		begun("", "s2c1", "agent", tool.Resumable),
		said("s2c1", 1, step.RoleUser),
		said("s2c1", 2, step.RoleAssistant, step.Call{ID: "s2c1.s2c1", Name: "Bash", Args: json.RawMessage("{}")}, step.Call{ID: "s2c1.s2c2", Name: "Bash", Args: json.RawMessage("{}")}),
		begun("s2c1", "s2c1.s2c1", "Bash", effect),
		begun("s2c1", "s2c1.s2c2", "Bash", effect),
		{Kind: journal.KindResult, Session: "s2c1", Step: &step.Step{Seq: 4, Role: step.RoleTool, CallID: "s2c1.s2c2", Name: "Bash"}},
	} {
		if err := tr.journal.Append(r); err != nil {
			t.Fatal(err)
		}
	}
}

// Where a call gets its result without going on with the session below it,
// each of the calls there gets one result, also one that had it already when
// the last of the others came.
func TestSettlingASessionBelowGivesEachCallOneResult(t *testing.T) {
	s := newTestRun(enginetest.Toolbox{agentTool()})
	s.left(t, tool.Once)
	s.signals.stop()
	s.run(t)
	results := map[string]int{}
	for r, err := range s.journal.Read() {
		if err != nil {
			t.Fatal(err)
		}
		if r.Kind == journal.KindResult {
			results[r.Step.CallID]++
		}
	}
	for _, id := range []string{"s2c1", "s2c1.s2c1", "s2c1.s2c2"} {
		if results[id] != 1 {
			t.Errorf("call %s has %d results", id, results[id])
		}
	}
}

// A call that was begun before a crash and is refused now was not simply "not
// executed".
func TestACallThatWasBegunIsNotReportedAsNotExecuted(t *testing.T) {
	s := newTestRun(enginetest.Toolbox{agentTool()})
	s.left(t, tool.Once)
	s.signals.stop()
	s.run(t)
	steps := s.steps(t)
	if told := steps[len(steps)-1].Text(); !strings.Contains(told, "Interrupted") {
		t.Errorf("told %q", told)
	}
}

// Who asks a Run to stop may think better of it, when what waited is cancelled
// already: the Run ends all the same, and does not ask a model over and over
// whose every answer is cancelled.
func TestAStopThatIsTakenBackEndsTheRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cut := turn{during: func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }}
		s := newTestRun(nil, cut, cut, cut, says("done"))
		time.AfterFunc(time.Second, func() {
			s.signals.stop()
			s.signals.update(func(now *signals.Signals) { now.Stopped = false })
		})
		out := s.run(t)
		if n := len(s.model.asked); n != 1 || out.Reason != task.ReasonStopped {
			t.Errorf("asked %d times, ended %s: %s", n, out.Reason, out.Message)
		}
	})
}
