package engine

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/internal/engine/meter"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/place"
	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/internal/state"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

func user(text string) step.Step {
	return step.Step{Role: step.RoleUser, Parts: []step.Part{{Kind: step.PartText, Text: text}}}
}

func assistant(text string, calls ...step.Call) step.Step {
	return step.Step{Role: step.RoleAssistant, Finish: step.FinishStop, Calls: calls, Parts: []step.Part{{Kind: step.PartText, Text: text}}}
}

func finishing(f step.Finish, s step.Step) step.Step {
	s.Finish = f
	return s
}

func noting(n step.Note, s step.Step) step.Step {
	s.Note = n
	return s
}

// nudgedOf is the notice that a call of a tool was text.
func nudgedOf(tool string) step.Step {
	return noting(step.NoteNudge, user(nudgeTextCall+fmt.Sprintf(nudgeCallTool, tool)))
}

func TestNext(t *testing.T) {
	read := step.Call{ID: "s2c1", Name: "Read"}
	finish := state.Session{Steps: []step.Step{user("go")}, Ending: &journal.Ending{Tool: "Finish", Text: "done", Output: []byte(`{"a":1}`)}}
	cases := map[string]struct {
		view view
		want action
	}{
		"a question is the model's turn": {
			view: view{Session: sessionOf(user("go"))},
			want: action{kind: askModel},
		},
		"an answer ends a Run without a schema": {
			view: view{Session: sessionOf(user("go"), assistant("done"))},
			want: action{kind: endSession, outcome: Outcome{Reason: task.ReasonFinished, Text: "done"}},
		},
		"an answer ends the Run although its last step was also its last allowed": {
			view: view{Session: sessionOf(user("go"), assistant("done")), reached: meter.Reached(step.Meter{Steps: 1}, task.Limits{Steps: 1})},
			want: action{kind: endSession, outcome: Outcome{Reason: task.ReasonFinished, Text: "done"}},
		},
		"an answer wins over a stop that comes too late": {
			view: view{Session: sessionOf(user("go"), assistant("done")), stopped: true, leaving: signals.ErrInterrupted},
			want: action{kind: endSession, outcome: Outcome{Reason: task.ReasonFinished, Text: "done"}},
		},
		"calls are executed": {
			view: view{Session: sessionOf(user("go"), assistant("", read))},
			want: action{kind: executeCalls, calls: []step.Call{read}},
		},
		"calls are not begun while the pod ends": {
			view: view{Session: sessionOf(user("go"), assistant("", read)), leaving: signals.ErrInterrupted},
			want: action{kind: endSession, outcome: Outcome{Reason: task.ReasonInterrupted, Message: "The runner is asked to end"}},
		},
		"a stop comes after the calls": {
			view: view{Session: sessionOf(user("go"), assistant("", read)), stopped: true},
			want: action{kind: executeCalls, calls: []step.Call{read}},
		},
		"a stop comes before the next turn": {
			view: view{Session: sessionOf(user("go")), stopped: true},
			want: action{kind: endSession, outcome: Outcome{Reason: task.ReasonStopped, Message: "Stopped by spec.desiredState"}},
		},
		"a stop without a cluster is not that of an object": {
			view: view{stopped: true, place: place.Local},
			want: action{kind: endSession, outcome: Outcome{Reason: task.ReasonStopped, Message: "Stopped by the command line"}},
		},
		"a reached limit ends the Run before the next turn": {
			view: view{Session: sessionOf(user("go")), reached: meter.Reached(step.Meter{Steps: 3}, task.Limits{Steps: 3})},
			want: action{kind: endSession, outcome: Outcome{Reason: task.ReasonStepLimit, Message: "Used 3 of 3 steps; raise limits.steps of the Run if it sets one, otherwise of the Agent, or give the Run less to do"}},
		},
		"a reached cost limit says so in money": {
			view: view{Session: sessionOf(user("go")), reached: meter.Reached(step.Meter{Usage: step.Usage{CostMicroUSD: 1_500_000}}, task.Limits{CostMicroUSD: 1_000_000})},
			want: action{kind: endSession, outcome: Outcome{Reason: task.ReasonCostLimit, Message: "Used 1.50USD of 1.00USD cost; raise limits.cost of the Run if it sets one, otherwise of the Agent, or give the Run less to do"}},
		},
		"finish ends the Run with its output": {
			view: view{Session: finish, schema: true},
			want: action{kind: endSession, outcome: Outcome{Reason: task.ReasonFinished, Output: []byte(`{"a":1}`)}},
		},
		"reject ends the Run with its reason": {
			view: view{Session: state.Session{Steps: []step.Step{user("go")}, Ending: &journal.Ending{Tool: "Reject", Text: "too hard"}}},
			want: action{kind: endSession, outcome: Outcome{Reason: task.ReasonRejected, Message: "The agent rejected the work: too hard", Text: "too hard"}},
		},
		"a text does not end a Run with a schema": {
			view: view{Session: sessionOf(user("go"), assistant("done")), schema: true},
			want: action{kind: instructModel, text: nudgeFinish, note: step.NoteNudge},
		},
		"a text after that is InvalidOutput": {
			view: view{Session: sessionOf(user("go"), assistant("done"), noting(step.NoteNudge, user(nudgeFinish)), assistant("done!")), schema: true},
			want: action{kind: endSession, outcome: Outcome{Reason: task.ReasonInvalidOutput, Message: "The model did not end as asked, in 2 answers in a row. The last: it answered in text and did not call Finish; simplify output.schema, or use a stronger Model"}},
		},
		"an empty answer is asked for again": {
			view: view{Session: sessionOf(user("go"), assistant(" "))},
			want: action{kind: instructModel, text: nudgeSilent, note: step.NoteNudge},
		},
		"a second empty answer is InvalidOutput": {
			view: view{Session: sessionOf(user("go"), assistant(""), noting(step.NoteNudge, user(nudgeSilent)), assistant(""))},
			want: action{kind: endSession, outcome: Outcome{Reason: task.ReasonInvalidOutput, Message: "The model did not end as asked, in 2 answers in a row. The last: its answer was empty; change the instructions or the prompt, or use a stronger Model"}},
		},
		"a cut answer is no answer": {
			view: view{Session: sessionOf(user("go"), finishing(step.FinishLength, assistant("so")))},
			want: action{kind: instructModel, text: nudgeCut, note: step.NoteNudge},
		},
		"a call as text is no answer": {
			view: view{Session: sessionOf(user("go"), assistant("<tool_call>")), textCall: "Write"},
			want: action{kind: instructModel, text: nudgeTextCall + fmt.Sprintf(nudgeCallTool, "Write"), note: step.NoteNudge},
		},
		"a call as text is no answer where finish is asked for": {
			view: view{Session: sessionOf(user("go"), assistant("<tool_call>")), textCall: "Write", schema: true},
			want: action{kind: instructModel, text: nudgeTextCall + fmt.Sprintf(nudgeCallTool, "Write"), note: step.NoteNudge},
		},
		"a call as text after that is InvalidOutput": {
			view: view{Session: sessionOf(user("go"), assistant("<tool_call>"), nudgedOf("Write"), assistant("[TOOL_CALLS]")), textCall: "Read"},
			want: action{kind: endSession, outcome: Outcome{Reason: task.ReasonInvalidOutput, Message: "The model did not end as asked, in 2 answers in a row. The last: " + fmt.Sprintf(invalidTextCall, "Read")}},
		},
		"a call as text after another nudge is told": {
			view: view{Session: sessionOf(user("go"), assistant(""), noting(step.NoteNudge, user(nudgeSilent)), assistant("<tool_call>")), textCall: "Read"},
			want: action{kind: instructModel, text: nudgeTextCall + fmt.Sprintf(nudgeCallTool, "Read"), note: step.NoteNudge},
		},
		"the answers are counted": {
			view: view{Session: sessionOf(user("go"), assistant(""), noting(step.NoteNudge, user(nudgeSilent)), assistant("<tool_call>"), nudgedOf("Write"), assistant(""))},
			want: action{kind: endSession, outcome: Outcome{Reason: task.ReasonInvalidOutput, Message: "The model did not end as asked, in 3 answers in a row. The last: its answer was empty; change the instructions or the prompt, or use a stronger Model"}},
		},
		"an empty answer after a call as text is InvalidOutput": {
			view: view{Session: sessionOf(user("go"), assistant("<tool_call>"), nudgedOf("Write"), assistant(""))},
			want: action{kind: endSession, outcome: Outcome{Reason: task.ReasonInvalidOutput, Message: "The model did not end as asked, in 2 answers in a row. The last: its answer was empty; change the instructions or the prompt, or use a stronger Model"}},
		},
		"an answer after a call as text ends the Run": {
			view: view{Session: sessionOf(user("go"), assistant("<tool_call>"), nudgedOf("Write"), assistant("done"))},
			want: action{kind: endSession, outcome: Outcome{Reason: task.ReasonFinished, Text: "done"}},
		},
		"a refusal ends the Run": {
			view: view{Session: sessionOf(user("go"), finishing(step.FinishRefusal, assistant("I cannot")))},
			want: action{kind: endSession, outcome: Outcome{Reason: task.ReasonRejected, Message: "The model declined to answer. I cannot"}},
		},
		"a refusal ends the Run although it came with calls": {
			view: view{Session: sessionOf(user("go"), finishing(step.FinishRefusal, assistant("I cannot", read)), step.Step{Role: step.RoleTool, CallID: read.ID})},
			want: action{kind: endSession, outcome: Outcome{Reason: task.ReasonRejected, Message: "The model declined to answer. I cannot"}},
		},
		"a refusal that somebody answered is the model's turn again": {
			view: view{Session: sessionOf(user("go"), finishing(step.FinishRefusal, assistant("I cannot")), user("try again"))},
			want: action{kind: askModel},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, next(tc.view), cmp.AllowUnexported(action{})); diff != "" {
				t.Errorf("next() -want +got:\n%s", diff)
			}
		})
	}
}
