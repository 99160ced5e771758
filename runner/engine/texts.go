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
	nudgeSilent = "Your answer was empty. Go on with the work, or say what came of it."
	nudgeCut    = "Your answer was cut at the limit of its length and is not used. Give a shorter one, whole."

	noteLowSpace = "The disk is full. Delete what is not needed; when it is full again, the work ends."
	noteAttempt  = "The attempt before this one ended: %s. This is attempt %d; the work goes on from here. Look at what is already done before you do it again."
	noteFresh    = "The attempt before this one ended: %s. This is attempt %d and begins from the start."

	resultCut         = "Not executed: your answer was cut at the limit of its length, so these arguments may be incomplete. Call again with shorter arguments, or do it in several calls."
	resultRefused     = "Not executed: the model declined to go on."
	resultEnded       = "Not executed: an earlier call has already ended the work."
	resultStopped     = "Not executed: the Run was asked to stop."
	resultLimit       = "Not executed: a limit of the Run is reached."
	resultLost        = "Interrupted: the runner was lost while this ran. It may have partly happened; look before you do it again."
	resultShutdown    = "Interrupted by shutdown. It may have partly happened; look before you do it again."
	resultEmpty       = "(no output)"
	resultTooLarge    = "\n… (cut: %d bytes in all; ask for less)"
	resultOutputLarge = "The output has %d bytes; at most %d are kept."
)

// nudges are said once each time; invalid says the same to people.
var (
	nudges  = []string{nudgeFinish, nudgeSilent, nudgeCut}
	invalid = map[string]string{
		nudgeFinish: "it answered in text and did not call finish",
		nudgeSilent: "its answer was empty",
		nudgeCut:    "its answer was cut at the limit of its length; raise parameters.maxOutputTokens of the Model",
	}
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
