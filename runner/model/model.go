package model

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/deckhand-dev/deckhand/runner/step"
)

// A Model answers one request as a stream of deltas. An error ends the stream
// and is one of this package's types or wraps the context's.
type Model interface {
	Stream(ctx context.Context, req *Request) iter.Seq2[Delta, error]
}

// A Request is the complete input of a model for one answer.
type Request struct {
	System string
	// Steps is the visible session, oldest first. Every call in it is answered.
	Steps  []step.Step
	Tools  []step.Tool
	Params Params
	// Files reads the images and documents of the steps; nil: a line of text replaces each.
	Files Files
	// CacheKey groups the requests of one session for the provider's prompt cache.
	CacheKey string
}

// Files reads the bytes of images and documents.
type Files interface {
	// ReadFile returns the bytes of the file with a SHA-256, in hex. It may be called from several goroutines at once.
	ReadFile(digest string) ([]byte, error)
}

// MaxFiles is the maximum number of images and documents in a request: the last ones of the session.
const MaxFiles = 20

// MaxFileBytes is how many bytes the images and documents of a request have in all at most.
const MaxFileBytes = 12 << 20

// Params are the inference settings of a request.
type Params = step.Params

// Reasoning is how hard a model should think before it answers.
type Reasoning = step.Reasoning

// The levels of reasoning; empty leaves it to the provider.
const (
	ReasoningOff    = step.ReasoningOff
	ReasoningLow    = step.ReasoningLow
	ReasoningMedium = step.ReasoningMedium
	ReasoningHigh   = step.ReasoningHigh
)

// A Delta is one piece of an answer. Any of its fields may be set.
type Delta struct {
	Text      string
	Thinking  string
	Signature string
	// Provider is data for this Model only, in a form of its adapter. If the last part has the same Kind, the data is
	// added to that part; otherwise it is a new part. Provider of kind [step.PartOpaque] is always a new part.
	Provider json.RawMessage
	// Kind is the kind of part that Provider belongs to; empty: thinking.
	Kind step.PartKind
	// Model is the name of the Model that answers from here on, if there are several.
	Model string
	Call  *CallDelta
	// Usage replaces earlier reports. It also precedes an error if an answer had begun, because tokens of a broken
	// stream are charged.
	Usage *step.Usage
	// Requests are the usage of each request of the answer, in order, if Usage is the sum of several, or is an estimate
	// although the provider reported the input. Prices depend on the input of a request, so the layer that prices a
	// Model reads them; other layers ignore them.
	Requests []RequestUsage
	Finish   step.Finish
	// UnclearReason is the provider's finish reason if it does not show that the answer is complete: it is unknown, or
	// it announces calls and there are none.
	UnclearReason string
	// Continued reports that the answer paused and that the rest is about to be requested, which counts as another
	// request. Usage in the same Delta is the usage so far. A consumer that stops here prevents that request.
	Continued bool
	// Reset reports that all earlier deltas are void: the model is asked again. Usage in the same Delta is the usage so
	// far; Because is the cause, for users.
	Reset   bool
	Because string
	// Warning describes, for users, what the sent request lacks: files that a user attached.
	Warning string
	// Repair reports that the provider refused the request, and that it is sent once more with a change, which counts
	// as another request. Because is the cause, for users.
	Repair *Repair
}

// RequestUsage is the usage of one request.
type RequestUsage struct {
	step.Usage
	// InputReported reports that the provider reported the input, also if the Usage is Estimated.
	InputReported bool
}

// A Repair is a change to a request that a provider refused. The change is kept for the requests
// after it.
type Repair struct {
	Kind RepairKind
	// Change describes the change for users.
	Change string
}

// RepairKind is the kind of change of a Repair.
type RepairKind string

// The kinds of repairs.
const (
	RepairField       RepairKind = "Field"       // a field is left out, or has another name
	RepairOutputLimit RepairKind = "OutputLimit" // the largest answer is lowered
	RepairReasoning   RepairKind = "Reasoning"   // earlier reasoning is sent, or is not sent
	RepairToolSchema  RepairKind = "ToolSchema"  // the schema of a tool is written differently
	RepairFiles       RepairKind = "Files"       // images and documents are not sent
)

// A CallDelta is one piece of a tool call. Pieces with one Index belong to one
// call. Name, if there is one, is all of the name so far; Args are concatenated.
type CallDelta struct {
	Index int
	Name  string
	Args  string
	// Replace reports that Args has all arguments so far.
	Replace bool
	// Provider is data for this Model only, in a form of its adapter. It replaces earlier data of the call.
	Provider json.RawMessage
	// Signed reports that Provider is a signature of reasoning that led to the call.
	Signed bool
}

// A Response is a whole answer.
type Response struct {
	// Model is the Model that answered, if there are several.
	Model string
	// Parts is the content in its order. The n-th part of kind [step.PartCall] is the place
	// of the n-th call; calls without a part follow all parts.
	Parts  []step.Part
	Calls  []Call
	Finish step.Finish
	// UnclearReason is the UnclearReason of the Delta with the Finish.
	UnclearReason string

	Usage step.Usage
}

// A Call is a tool call as the model wrote it. Args may be any text, JSON or not, and is {} if the model wrote none.
// The engine parses and repairs it, and gives it an id.
type Call struct {
	Name string
	Args string
}
