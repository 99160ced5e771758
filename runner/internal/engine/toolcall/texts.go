package toolcall

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// What the model reads of calls that were not made, or not to their end. The texts
// are part of the session: a word changed here changes what a resumed session is
// compared with.
const (
	ResultCut         = "Not executed: your answer was cut at the limit of its length, so these arguments may be incomplete. Call again with shorter arguments, or do it in several calls."
	ResultRefused     = "Not executed: the model declined to go on."
	ResultEnded       = "Not executed: an earlier call has already ended the work."
	ResultStopped     = "Not executed: the Run was asked to stop."
	ResultLimit       = "Not executed: a limit of the Run is reached."
	ResultLost        = "Interrupted: the runner was lost while this ran. It may have partly happened; look before you do it again."
	ResultUnread      = "Not accepted: %s failed in this turn, and you have not read why. Read the results of this turn first. Then go on with the work, or end it again and say what failed."
	ResultShutdown    = "Interrupted by shutdown. It may have partly happened; look before you do it again."
	ResultTooMany     = "Not executed: the Run may make no more tool calls (limits.toolCalls)."
	ResultTwice       = "This call has already opened its session."
	ResultChild       = "The agent %s ended without a result (%s). %s"
	ResultRejected    = "The agent %s rejected the work: %s"
	ResultPartial     = "The last that it said: %s"
	ResultNoOperator  = "The agent %s works in a Run of its own, and that needs a cluster: there is no operator here that could make one."
	ResultInputLarge  = "Not executed: the arguments have %d bytes, and the agent %s, in a Run of its own, can be given %d."
	ResultRefusedRun  = "There is no Run of the agent %s: %s"
	ResultAbandoned   = "The Run was asked to stop before the agent %s had ended; what it did is not known here."
	AdviceAlone       = "Do this part of the work yourself, or say in your result what stands in the way."
	AdviceShorter     = "Say it in fewer words, or split the work into several calls."
	ResultAmbiguous   = "Not executed: %v."
	ResultForbidden   = "Denied by the policy"
	ResultForbiddenBy = "Denied by policy rule %s"
	ResultDenied      = "Denied by %s"
	ResultUndecided   = "Denied: no user decided in time."
	ResultNoApprovers = "Denied: it needs the approval of a user, and there is no way to ask one."
	AdviceDenied      = "Do not try to get the same in another way. Go on without it, or say in your result what stands in the way."
	ResultUnapproved  = "it needs the approval of a person"
	AdviceUnapproved  = "Call the tool with that target directly: then an approval is requested."
	ResultEmpty       = "(no output)"
	ResultFileRefused = "[%s is not shown: %v]"
	ResultMoreFiles   = "[%d more files are not shown: at most %d are at once]"
	ResultNoMessage   = "the tool failed without a message"
	ResultTooLarge    = "\n… (cut: %d bytes in all; ask for less)"
	ResultOutputLarge = "The output has %d bytes; at most %d are kept."
)

// ResultTimeout is the result of a call that took too long.
func ResultTimeout(after time.Duration) string {
	return fmt.Sprintf("Timed out after %s and was cancelled. It may have partly happened.", after)
}

func resultUnknown(name string, known []step.Tool) string {
	names := make([]string, len(known))
	for i, t := range known {
		names[i] = t.Name
	}
	return fmt.Sprintf("Unknown tool name: '%s'. Available tools: %s", name, strings.Join(names, ", "))
}

// summarize is a call and what came of it in a line.
func summarize(t *toolCall, result step.Step, res tool.Result) string {
	switch {
	case result.IsError:
		return FirstLine(result.Text())
	case res.Summary != "":
		return FirstLine(res.Summary)
	}
	return task.Cut(string(t.shownArgs()), task.MaxSummary)
}

// shownArgs are the arguments that users are shown: those of the call as it was made, or
// would have been.
func (t *toolCall) shownArgs() json.RawMessage {
	switch {
	case t.made != nil:
		return t.made
	case t.args != nil:
		return t.args
	}
	return t.call.Args
}

// FirstLine is the first line of a text, bounded.
func FirstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return task.Cut(line, task.MaxSummary)
}
