package transcript

import (
	"time"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// A Sink receives the entries of a transcript, in order.
type Sink interface{ Add(e Entry) }

// An Entry is an event of a Run. Its texts come from models, tools and users, and may contain anything.
type Entry struct {
	// Time is zero if the log does not have it.
	Time    time.Time
	Run     string
	Attempt int
	// Scope is the session of the event.
	Scope step.Scope
	// Message describes the event; it may be empty.
	Message string
	Fact    Fact
}

// A Fact is the data of an Entry: a type of this package or, if the Reader has nothing to add, the
// payload of an event: RunStarted, Reset, CallOutput, CallDenied, Decided,
// ChildStarted, ChildFinished, HostRefused or Files.
type Fact any

// AttemptContinued means that events of another attempt follow whose beginning is not in the log.
type AttemptContinued struct{}

// Gap means that events are missing. Announced is whether the runner left them out itself; otherwise the kubelet has
// deleted the beginning of a long log.
type Gap struct{ Announced bool }

// Warning is a warning for users.
type Warning struct{ Text string }

// Note is a line of a custom runner, or an event of an unknown type.
type Note struct{ Text string }

// Prompt is a message to the model.
type Prompt struct {
	Text string
	// FromUser is whether a user wrote it. Other messages come from the runner and from hooks.
	FromUser bool
}

// Text is a piece of an answer of the model. Turn is the id of the turn; empty: the log does not have it.
type Text struct{ Turn, Text string }

// Thinking is a piece of the model's reasoning before its answer, in the Turn with this id.
type Thinking struct{ Turn, Text string }

// Answer ends an answer of the model. Its texts came before it.
type Answer struct{ Step step.Step }

// Call is a tool call that is started, or that was refused: its result follows.
type Call struct{ step.Call }

// Result is the result of a tool call.
type Result struct{ Step step.Step }

// Request is a request of the Run to users.
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
	// RefusedHosts are the hosts of refused connections of commands in all attempts, with ports, sorted.
	RefusedHosts []string
	// DeniedTools are the tools with denied calls in all attempts, sorted by name.
	DeniedTools []DeniedTool
}

// DeniedTool is a tool with denied calls.
type DeniedTool struct {
	Name  string
	Calls int
}
