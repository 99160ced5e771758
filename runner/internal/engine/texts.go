package engine

import (
	"fmt"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/runner/step"
)

// What the loop says to the model. The texts are part of the session: a word
// changed here changes what a resumed session is compared with.
const (
	nudgeFinish = "You have not ended the work yet. Call the tool finish with your result as its arguments; a text alone does not end it."
	nudgeSilent = "Your answer was empty. Go on with the work, or say what the result is."
	nudgeCut    = "Your answer was cut at the limit of its length and is not used. Give a shorter one, whole."

	nudgeStuck = "You are repeating yourself: %s. Change your approach: review what you know, try another way, or say what blocks you."

	noteLowSpace  = "The disk is full. Delete what is not needed; when it is full again, the work ends."
	noteAttempt   = "The attempt before this one ended: %s. This is attempt %d; the work continues from here. Look at what is already done before you do it again."
	noteLost      = "The processes that ran beside this session have ended: the runner or its pod was replaced.\n%s\n%s Start again what you still need."
	noteFiles     = "Files are as they were left."
	noteLostFiles = "What was written below %s before was lost. Other files are as they were left."
	noteFresh     = "The attempt before this one ended: %s. This is attempt %d and begins from the start."

	resultCut         = "Not executed: your answer was cut at the limit of its length, so these arguments may be incomplete. Call again with shorter arguments, or do it in several calls."
	resultRefused     = "Not executed: the model declined to go on."
	resultEnded       = "Not executed: an earlier call has already ended the work."
	resultStopped     = "Not executed: the Run was asked to stop."
	resultLimit       = "Not executed: a limit of the Run is reached."
	resultLost        = "Interrupted: the runner was lost while this ran. It may have partly happened; look before you do it again."
	resultShutdown    = "Interrupted by shutdown. It may have partly happened; look before you do it again."
	resultTooMany     = "Not executed: the Run may make no more tool calls (limits.toolCalls)."
	resultDeep        = "Agents may call each other only %d deep (limits.depth). Do this part of the work yourself."
	resultNoAgents    = "This agent may call no other."
	resultTwice       = "This call has already opened its session."
	resultChild       = "The agent %s ended without a result (%s). %s"
	resultRejected    = "The agent %s rejected the work: %s"
	resultPartial     = "The last that it said: %s"
	resultNoCluster   = "The agent %s works in a Run of its own, and that needs a cluster: there is no operator here that could make one."
	resultInputLarge  = "Not executed: the arguments have %d bytes, and the agent %s, in a Run of its own, can be given %d."
	resultRefusedRun  = "There is no Run of the agent %s: %s"
	resultAbandoned   = "The Run was asked to stop before the agent %s had ended; what it did is not known here."
	adviceAlone       = "Do this part of the work yourself, or say in your result what stands in the way."
	adviceShorter     = "Say it in fewer words, or split the work into several calls."
	resultAmbiguous   = "Not executed: %v."
	resultForbidden   = "Denied by the policy"
	resultForbiddenBy = "Denied by policy rule %s"
	resultDenied      = "Denied by %s"
	resultUndecided   = "Denied: no user decided in time."
	resultNobody      = "Denied: it needs the approval of a user, and there is no way to ask one."
	adviceDenied      = "Do not try to get the same in another way. Go on without it, or say in your result what stands in the way."
	resultUnapproved  = "it needs the approval of a person"
	adviceUnapproved  = "Call the tool with that target directly: then an approval is requested."

	resultEmpty       = "(no output)"
	resultNoMessage   = "the tool failed without a message"
	resultTooLarge    = "\n… (cut: %d bytes in all; ask for less)"
	resultOutputLarge = "The output has %d bytes; at most %d are kept."
)

// What people are told of an end.
const (
	endStuck    = "The agent repeated itself, also after a notice: %s (%s, %d times). Change its instructions or tools, or use another Model"
	endCrowded  = "The session does not fit the model: %d summaries in a row left %d tokens where %d may be used; give the Run less to read, shorten the instructions and tools, or use a Model with a larger window"
	endOverflow = "%s; nothing more can be hidden: give the Run less to read, shorten the instructions and tools, or use a Model with a larger window"
)

// What stands in the session where nothing better is known.
const noSummary = "(The model gave no summary of the steps before this one. Look at what is there before you go on.)"

// invalid is what a nudge is about, as people are told.
var invalid = map[string]string{
	nudgeFinish: "it answered in text and did not call finish",
	nudgeSilent: "its answer was empty",
	nudgeCut:    "its answer was cut at the limit of its length; raise inference.maxOutputTokens of the Model",
}

// States of the Run in events, beside those in its status.
const (
	stateWorking = "Working" // it goes on
	stateClosing = "Closing" // something failed that only stands around the work
)

func resultTimeout(after time.Duration) string {
	return fmt.Sprintf("Timed out after %s and was cancelled. It may have partly happened.", after)
}

func resultUnknown(name string, known []step.Tool) string {
	names := make([]string, len(known))
	for i, t := range known {
		names[i] = t.Name
	}
	return fmt.Sprintf("Unknown tool name: '%s'. Available tools: %s", name, strings.Join(names, ", "))
}
