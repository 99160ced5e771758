package transcript

import (
	"time"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// A Sink receives the entries of a transcript, in order.
type Sink interface{ Add(e Entry) }

// An Entry is something that happened in a Run. Its texts are those of models, tools and users, and
// may contain anything.
type Entry struct {
	// Time is zero if the log does not have it.
	Time    time.Time
	Run     string
	Attempt int
	// Scope is the session in which it happened.
	Scope step.Scope
	// Message is the event in words; it may be empty.
	Message string
	Fact    Fact
}

// A Fact is the data of an Entry: a type of this package or, if the Reader has nothing to add, the
// payload of an event: RunStarted, Reset, CallOutput, CallDenied, Decided,
// ChildStarted, ChildFinished, HostRefused or Files.
type Fact any

// AttemptContinued says that events of another attempt follow whose beginning is not in the log.
type AttemptContinued struct{}

// Gap says that events are missing. Announced is whether the runner left them out itself; otherwise
// the kubelet has deleted the beginning of a long log.
type Gap struct{ Announced bool }

// Warning is what a user should notice, as Text says.
type Warning struct{ Text string }

// Note is a line of a custom runner, or an event of an unknown type.
type Note struct{ Text string }

// Prompt is a message to the model.
type Prompt struct {
	Text string
	// FromUser is whether a user wrote it. Other messages are those of the runner and of hooks.
	FromUser bool
}

// Text is a piece of an answer of the model. Turn is the id of the turn; empty: the log does not have it.
type Text struct{ Turn, Text string }

// Thinking is a piece of what the model thinks before its answer, in the Turn of this id.
type Thinking struct{ Turn, Text string }

// Answer ends an answer of the model. Its texts came before it.
type Answer struct{ Step step.Step }

// Call is a tool call that is started, or that was refused: its result follows.
type Call struct{ step.Call }

// Result is the result of a tool call.
type Result struct{ Step step.Step }

// Request is what the Run asks a user.
type Request struct {
	events.Pending
	// Doubt is what is wrong with the request; empty: nothing is known to be wrong.
	Doubt string
}

// End is the end of a Run, or of an attempt that a later one continues.
type End struct {
	events.RunFinished
	// IsLastAnswer is whether the text of the result is the last answer of the model.
	IsLastAnswer bool
	// RefusedHosts are the hosts that commands were refused in all attempts, with ports, sorted.
	RefusedHosts []string
	// DeniedTools are the tools of which calls were denied in all attempts, sorted by name.
	DeniedTools []DeniedTool
}

// DeniedTool is a tool of which calls were denied.
type DeniedTool struct {
	Name  string
	Calls int
}
