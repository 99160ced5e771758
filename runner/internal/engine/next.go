package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/internal/compaction"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/meter"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/toolcall"
	"github.com/deckhand-dev/deckhand/runner/internal/loopdetect"
	"github.com/deckhand-dev/deckhand/runner/internal/state"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A view is everything that one decision may depend on.
type view struct {
	state.Session
	schema   bool         // finish is the only way to end
	reached  *meter.Limit // a limit that is used up
	more     bool         // somebody may be asked for more of it
	notes    string       // what the runner has to say
	messages []task.Decision
	leaving  *task.EndError // why the work is left to the next attempt
	paused   bool
	stop     bool

	used        int64 // how much of the model's window a request takes
	trigger     int64 // from where on that is too much
	overflow    *model.ContextTooLongError
	compactions int // compactions in a row that were not enough
}

// last is the last settled step; the zero Step when there is none.
func (v view) last() step.Step {
	if len(v.Steps) == 0 {
		return step.Step{}
	}
	return v.Steps[len(v.Steps)-1]
}

// answer is the last that the model said, unless somebody spoke after it: the
// results of its calls are part of it.
func (v view) answer() step.Step {
	for _, s := range slices.Backward(v.Steps) {
		if s.Role != step.RoleTool {
			return s
		}
	}
	return step.Step{}
}

// An action is what comes next, as data.
type action struct {
	kind     kind
	calls    []step.Call     // to execute
	text     string          // to say to the model
	note     step.Note       // why
	messages []task.Decision // to listen to
	cut      compaction.Cut  // to take out of the model's sight
	outcome  Outcome         // of the end
}

type kind int

const (
	ask     kind = iota // the model has the word
	hold                // nobody has: the Run is paused
	execute             // its calls have
	say                 // the model is told how to go on
	listen              // a person has spoken
	compact             // the session is too long for the model
	raise               // a person may grant more
	end
)

// rules are the whole policy of a session, most pressing first: the first that
// applies decides. When none does, it is the model's turn.
var rules = []func(view) (action, bool){
	ended,     // finish or reject was called
	spoken,    // the model has answered, and an answer is all that is asked
	declined,  // the model will not answer
	departs,   // the runner leaves: what is open is for the next attempt
	held,      // somebody paused it
	open,      // calls wait for their results
	stopped,   // somebody asked it to stop
	limited,   // a limit is reached
	misfit,    // an answer that cannot be the last: say so once
	circling,  // the agent goes round in circles: say so once
	noted,     // the runner has something to say
	addressed, // a person has spoken
	crowded,   // the session is too long for the model
}

func next(v view) action {
	for _, rule := range rules {
		if act, ok := rule(v); ok {
			return act
		}
	}
	return action{kind: ask}
}

func endWith(o Outcome) (action, bool) { return action{kind: end, outcome: o}, true }

func ended(v view) (action, bool) {
	switch {
	case v.Ending == nil || len(v.Open()) > 0:
		return action{}, false
	case v.Ending.Tool == toolcall.ToolReject:
		return endWith(Outcome{Reason: task.ReasonRejected, Message: "The agent rejected the work: " + v.Ending.Text, Text: v.Ending.Text})
	case v.Ending.Output != nil:
		return endWith(Outcome{Reason: task.ReasonFinished, Output: v.Ending.Output})
	default:
		return endWith(Outcome{Reason: task.ReasonFinished, Text: v.Ending.Text})
	}
}

func spoken(v view) (action, bool) {
	s := v.last()
	final := s.Role == step.RoleAssistant && len(s.Calls) == 0 && s.Finish != step.FinishRefusal
	if !final || v.schema || problem(v, s) != "" {
		return action{}, false
	}
	return endWith(Outcome{Reason: task.ReasonFinished, Text: s.Text()})
}

func declined(v view) (action, bool) {
	s := v.answer()
	if s.Finish != step.FinishRefusal || len(v.Open()) > 0 {
		return action{}, false
	}
	return endWith(Outcome{Reason: task.ReasonRejected, Message: strings.TrimSpace("The model declined to answer. " + s.Text())})
}

func departs(v view) (action, bool) {
	if v.leaving == nil {
		return action{}, false
	}
	return endWith(Outcome{Reason: v.leaving.Reason, Message: v.leaving.Message})
}

func held(v view) (action, bool) {
	return action{kind: hold}, v.paused && !v.stop
}

func open(v view) (action, bool) {
	calls := v.Open()
	return action{kind: execute, calls: calls}, len(calls) > 0
}

func stopped(v view) (action, bool) {
	if !v.stop {
		return action{}, false
	}
	return endWith(Outcome{Reason: task.ReasonStopped, Message: "Stopped by spec.desiredState"})
}

func limited(v view) (action, bool) {
	switch {
	case v.reached == nil:
		return action{}, false
	case v.more && v.reached.Extensible():
		return action{kind: raise}, true
	}
	err := v.reached.End()
	return endWith(Outcome{Reason: err.Reason, Message: err.Message})
}

// misfit tells the model once what is wrong with its answer. The same again is
// InvalidOutput.
func misfit(v view) (action, bool) {
	s := v.last()
	wrong := problem(v, s)
	if s.Role != step.RoleAssistant || wrong == "" {
		return action{}, false
	}
	if nudged(v.Steps[:len(v.Steps)-1]) {
		return endWith(Outcome{Reason: task.ReasonInvalidOutput, Message: "The model did not end as asked: " + invalid[wrong]})
	}
	return action{kind: say, text: wrong, note: step.NoteNudge}, true
}

// nudged says whether the last that was said to the model was how to end.
func nudged(steps []step.Step) bool {
	for _, s := range slices.Backward(steps) {
		switch {
		case s.Note == step.NoteNudge:
			return true
		case s.Note != step.NoteRunner && s.Note != step.NoteHook:
			return false
		}
	}
	return false
}

// circling tells the model once that it goes round in circles. Found again, it
// is Stuck.
func circling(v view) (action, bool) {
	f, found := loopdetect.Find(v.Steps)
	if !found {
		return action{}, false
	}
	if v.Nudged {
		return endWith(Outcome{Reason: task.ReasonStuck, Message: fmt.Sprintf(endStuck, f.What, f.Rule, f.Times)})
	}
	return action{kind: say, text: fmt.Sprintf(nudgeStuck, f.What), note: step.NoteStuck}, true
}

func noted(v view) (action, bool) {
	return action{kind: say, text: v.notes, note: step.NoteRunner}, v.notes != ""
}

func addressed(v view) (action, bool) {
	return action{kind: listen, messages: v.messages}, len(v.messages) > 0
}

// crowded makes room before the model is asked. Where nothing can be hidden
// the provider has the last word.
func crowded(v view) (action, bool) {
	if v.overflow == nil && v.used <= v.trigger {
		return action{}, false
	}
	cut, ok := compaction.Plan(v.Steps, v.used, v.trigger)
	switch {
	case ok && v.compactions < maxCompactions:
		return action{kind: compact, cut: cut}, true
	case ok:
		return endWith(Outcome{Reason: task.ReasonContextTooLong, Message: fmt.Sprintf(endCrowded, v.compactions, v.used, v.trigger)})
	case v.overflow != nil:
		return endWith(Outcome{Reason: task.ReasonContextTooLong, Message: fmt.Sprintf(endOverflow, v.overflow)})
	}
	return action{}, false
}

// problem is what to tell the model about a turn without calls that cannot be
// the last one; empty when it can.
func problem(v view, s step.Step) string {
	switch {
	case len(s.Calls) > 0:
		return ""
	case s.Finish == step.FinishLength:
		return nudgeCut
	case strings.TrimSpace(s.Text()) == "":
		return nudgeSilent
	case v.schema:
		return nudgeFinish
	}
	return ""
}
