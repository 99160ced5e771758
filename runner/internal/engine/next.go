package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/internal/compaction"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/meter"
	"github.com/deckhand-dev/deckhand/runner/internal/loopdetect"
	"github.com/deckhand-dev/deckhand/runner/internal/place"
	"github.com/deckhand-dev/deckhand/runner/internal/state"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A view is everything that one decision may depend on.
type view struct {
	state.Session
	place    place.Place  // where the agent works
	schema   bool         // finish is the only way to end
	reached  *meter.Limit // a limit that is used up
	canGrant bool         // a user may be asked for more of it
	notes    string       // what the runner has to say
	prompt   string       // what the user asks for; empty: nothing, because another Run is continued
	textCall string       // the tool that the last answer calls in its text; empty: none
	messages []task.Decision
	leaving  *task.EndError // why the work is left to the next attempt
	paused   bool
	stopped  bool

	contextSize // of the next request
	overflow    *model.ContextTooLongError
	refused     *task.EndError // of an overflow that the provider did not call so
	compactions int            // compactions in a row that were not enough by our count
	sinceAnswer int            // compactions since the last answer
}

// last returns the last settled step; the zero Step: there is none.
func (v view) last() step.Step {
	if len(v.Steps) == 0 {
		return step.Step{}
	}
	return v.Steps[len(v.Steps)-1]
}

// answer returns the last answer of the model, even after the results of its calls, unless a user spoke after it.
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
	kind     actionKind
	calls    []step.Call     // to execute
	text     string          // to say to the model
	note     step.Note       // why
	messages []task.Decision // to listen to
	cut      compaction.Cut  // to take out of the model's sight
	outcome  Outcome         // of the end
}

type actionKind int

const (
	askModel       actionKind = iota // it is the turn of the model
	holdRun                          // the Run is paused
	executeCalls                     // calls of the model are open
	instructModel                    // a message tells the model how to continue
	addMessages                      // a user has sent messages
	compactSession                   // the session is too long for the model
	requestGrant                     // a user may grant more of a limit
	sayPrompt                        // the session of another Run is taken over, and this Run has said nothing yet
	endSession
)

// rules decide what a session does next, most important first: the first that applies decides. If none does, the model
// is asked.
var rules = []func(view) (action, bool){
	takenOver,     // the session of another Run is continued
	sessionEnded,  // finish or reject was called
	answered,      // the model has answered, and an answer is all that is asked
	refused,       // the model will not answer
	leaving,       // the runner leaves: what is open is for the next attempt
	paused,        // the Run is paused
	openCalls,     // calls wait for their results
	runStopped,    // the Run is asked to stop
	limitReached,  // a limit is reached
	invalidAnswer, // an answer that cannot be the last: say so once
	repeating,     // the agent repeats itself: say so once
	runnerNotes,   // the runner has something to say
	userMessages,  // a user has sent messages
	contextFull,   // the session is too long for the model
}

func next(v view) action {
	for _, rule := range rules {
		if act, ok := rule(v); ok {
			return act
		}
	}
	return action{kind: askModel}
}

// takenOver decides until this Run has said what it is for. How the Run before it ended, or its last answer, is not an end
// of this one.
func takenOver(v view) (action, bool) {
	if v.Before == nil {
		return action{}, false
	}
	for _, rule := range []func(view) (action, bool){leaving, paused, openCalls, runStopped, limitReached} {
		if act, ok := rule(v); ok {
			return act, true
		}
	}
	if v.prompt == "" {
		if problem := nothingToSay(v); problem != "" {
			return endWith(Outcome{Reason: task.ReasonMisconfigured, Message: problem})
		}
	}
	return action{kind: sayPrompt}, true
}

// nothingToSay returns why a Run without a prompt cannot continue another one; empty: it can.
func nothingToSay(v view) string {
	last := v.last()
	switch {
	case v.Before.Ended == string(task.ReasonFinished), v.Before.Ended == string(task.ReasonRejected):
		return fmt.Sprintf("Run %s, which is continued, ended with %s: say what else to do, with a prompt", v.Before.Run, v.Before.Ended)
	case last.Role == step.RoleAssistant && len(last.Calls) == 0:
		return fmt.Sprintf("The session of Run %s, which is continued, ends with an answer of the model: say what else to do, with a prompt", v.Before.Run)
	}
	return ""
}

func endWith(o Outcome) (action, bool) { return action{kind: endSession, outcome: o}, true }

func sessionEnded(v view) (action, bool) {
	switch {
	case v.Ending == nil || len(v.Open()) > 0:
		return action{}, false
	case task.IsReject(v.Ending.Tool):
		return endWith(Outcome{Reason: task.ReasonRejected, Message: "The agent rejected the work: " + v.Ending.Text, Text: v.Ending.Text})
	case v.Ending.Output != nil:
		return endWith(Outcome{Reason: task.ReasonFinished, Output: v.Ending.Output})
	default:
		return endWith(Outcome{Reason: task.ReasonFinished, Text: v.Ending.Text})
	}
}

func answered(v view) (action, bool) {
	s := v.last()
	final := s.Role == step.RoleAssistant && len(s.Calls) == 0 && s.Finish != step.FinishRefusal
	if !final || v.schema || answerProblem(v, s) != (problem{}) {
		return action{}, false
	}
	return endWith(Outcome{Reason: task.ReasonFinished, Text: s.Text()})
}

func refused(v view) (action, bool) {
	s := v.answer()
	if s.Finish != step.FinishRefusal || len(v.Open()) > 0 {
		return action{}, false
	}
	return endWith(Outcome{Reason: task.ReasonRejected, Message: strings.TrimSpace("The model declined to answer. " + s.Text())})
}

func leaving(v view) (action, bool) {
	if v.leaving == nil {
		return action{}, false
	}
	return endWith(Outcome{Reason: v.leaving.Reason, Message: v.leaving.Message})
}

func paused(v view) (action, bool) {
	return action{kind: holdRun}, v.paused && !v.stopped
}

func openCalls(v view) (action, bool) {
	calls := v.Open()
	return action{kind: executeCalls, calls: calls}, len(calls) > 0
}

func runStopped(v view) (action, bool) {
	if !v.stopped {
		return action{}, false
	}
	return endWith(Outcome{Reason: task.ReasonStopped, Message: v.place.Stopped()})
}

func limitReached(v view) (action, bool) {
	switch {
	case v.reached == nil:
		return action{}, false
	case v.canGrant && v.reached.Extensible():
		return action{kind: requestGrant}, true
	}
	err := v.reached.End(v.place)
	return endWith(Outcome{Reason: err.Reason, Message: err.Message})
}

// invalidAnswer tells the model once what is wrong with its answer. A second such answer ends the session with
// InvalidOutput. An answer that has a call as text, after a notice about something else, gets one more notice: the
// model does not know yet that nothing was executed.
func invalidAnswer(v view) (action, bool) {
	s := v.last()
	wrong := answerProblem(v, s)
	if s.Role != step.RoleAssistant || wrong == (problem{}) {
		return action{}, false
	}
	told := lastNudge(v.Steps[:len(v.Steps)-1])
	if told != "" && (v.textCall == "" || strings.HasPrefix(told, nudgeTextCall)) {
		return endWith(Outcome{Reason: task.ReasonInvalidOutput, Message: notAsAsked(v.Steps, wrong)})
	}
	return action{kind: instructModel, text: wrong.nudge, note: step.NoteNudge}, true
}

// notAsAsked returns the message of a Run whose model did not follow the notice about how to end.
func notAsAsked(steps []step.Step, wrong problem) string {
	answers := 1
	for _, s := range slices.Backward(steps) {
		if s.Note == step.NoteNudge {
			answers++
		} else if s.Role != step.RoleAssistant && s.Note != step.NoteRunner && s.Note != step.NoteHook || len(s.Calls) > 0 {
			break
		}
	}
	return fmt.Sprintf("The model did not end as asked, in %d answers in a row. The last: %s", answers, wrong.reason)
}

// lastNudge returns the notice about how to end, if it is the last message to the model.
func lastNudge(steps []step.Step) string {
	for _, s := range slices.Backward(steps) {
		switch {
		case s.Note == step.NoteNudge:
			return s.Text()
		case s.Note != step.NoteRunner && s.Note != step.NoteHook:
			return ""
		}
	}
	return ""
}

// repeating tells the model once that it repeats itself. The second time, the session ends with Stuck.
func repeating(v view) (action, bool) {
	f, found := loopdetect.Find(v.Steps)
	if !found {
		return action{}, false
	}
	if v.Nudged {
		return endWith(Outcome{Reason: task.ReasonStuck, Message: fmt.Sprintf(endStuck, f.What, f.Rule, f.Times)})
	}
	return action{kind: instructModel, text: fmt.Sprintf(nudgeStuck, f.What), note: step.NoteStuck}, true
}

func runnerNotes(v view) (action, bool) {
	return action{kind: instructModel, text: v.notes, note: step.NoteRunner}, v.notes != ""
}

func userMessages(v view) (action, bool) {
	return action{kind: addMessages, messages: v.messages}, len(v.messages) > 0
}

// contextFull makes room before the model is asked. The session ends only if the provider refused the current request
// as too long and nothing more can be hidden.
func contextFull(v view) (action, bool) {
	if v.overflow == nil && v.used <= v.trigger {
		return action{}, false
	}
	cut, ok := planCut(v)
	switch {
	case ok && v.overflow == nil && v.compactions < maxCompactions, ok && v.overflow != nil && v.sinceAnswer < maxCompactions:
		return action{kind: compactSession, cut: cut}, true
	case v.overflow == nil:
		return action{}, false
	case v.refused != nil:
		return endWith(Outcome{Reason: v.refused.Reason, Message: v.refused.Message})
	case ok:
		return endWith(Outcome{Reason: task.ReasonContextTooLong, Message: fmt.Sprintf(endContextFull, v.overflow, v.sinceAnswer)})
	}
	return endWith(Outcome{Reason: task.ReasonContextTooLong, Message: fmt.Sprintf(endOverflow, v.overflow)})
}

// planCut returns what to hide of a session that is too long.
func planCut(v view) (compaction.Cut, bool) {
	if v.overflow != nil {
		return compaction.PlanRefused(v.Steps, v.used, v.trigger)
	}
	cut, ok := compaction.Plan(v.Steps, v.used, v.trigger)
	if !ok && v.exceeds {
		return compaction.PlanTighter(v.Steps)
	}
	return cut, ok
}

// A problem is the reason why an answer cannot be the last one.
type problem struct {
	nudge  string // tells the model
	reason string // tells users, if the model gives such an answer again
}

// answerProblem returns why a turn without calls cannot be the last one, or the zero problem.
func answerProblem(v view, s step.Step) problem {
	switch {
	case len(s.Calls) > 0:
		return problem{}
	case s.Finish == step.FinishLength:
		return problem{nudgeCut, fmt.Sprintf(invalidCut, v.place.TheModel("inference.maxOutputTokens"))}
	case strings.TrimSpace(s.Text()) == "":
		return problem{nudgeSilent, invalidSilent}
	case v.textCall != "":
		return problem{nudgeTextCall + fmt.Sprintf(nudgeCallTool, v.textCall), fmt.Sprintf(invalidTextCall, v.textCall)}
	case v.schema:
		return problem{nudgeFinish, invalidFinish}
	}
	return problem{}
}
