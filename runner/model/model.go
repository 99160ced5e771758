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
	// Files reads the images and documents of the steps; nil: it has none, and a line stands
	// for each.
	Files Files
	// CacheKey groups the requests of one session for the provider's prompt cache.
	CacheKey string
}

// Files reads the bytes of images and documents.
type Files interface {
	// ReadFile returns the bytes of that SHA-256, in hex. It may be called from several
	// goroutines at once.
	ReadFile(digest string) ([]byte, error)
}

// MaxFiles is how many images and documents a request has at most: the last ones of the session.
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
	// Provider is data that only this Model reads again, in a form of its adapter. It
	// completes the last part if that is of the Kind, and else is a part of its own: what
	// follows begins another part. Provider of kind [step.PartOpaque] is always one.
	Provider json.RawMessage
	// Kind is the kind of part that Provider belongs to; empty: thinking.
	Kind step.PartKind
	// Model names the Model that answers from here on, where there are several.
	Model string
	Call  *CallDelta
	// Usage replaces what was reported before. It comes before an error too, where
	// an answer had begun: tokens of a cut stream are spent.
	Usage *step.Usage
	// Requests are what each request of the answer used, in order, if Usage is the sum of
	// several, or an estimate although the provider reported the input. Prices depend on the
	// input of a request, so the layer that prices a Model reads them; other layers do not.
	Requests []RequestUsage
	Finish   step.Finish
	// UnclearReason is the provider's finish reason if it does not say that the answer is
	// whole: it is not known, or it announces calls and there are none.
	UnclearReason string
	// Continued says that the answer paused and that the model is about to be asked
	// for the rest of it: one request more. Usage beside it is what the answer cost
	// so far. A consumer that stops here stops before that request.
	Continued bool
	// Reset says that all deltas before it, if any came, are void: the model is
	// asked again. A Usage beside it is what was spent so far; Because says why,
	// for people.
	Reset   bool
	Because string
	// Warning says, for people, what the request lacks although it is sent: files that a user shows.
	Warning string
	// Repair says that the provider refused the request, and that it is sent once more with
	// a change: one request more. Because is why, for people.
	Repair *Repair
}

// RequestUsage is what one request used.
type RequestUsage struct {
	step.Usage
	// InputReported reports that the provider reported the input, also if the Usage is Estimated.
	InputReported bool
}

// A Repair is a change to a request that a provider refused. The change is kept for the requests
// after it.
type Repair struct {
	Kind RepairKind
	// Change says, for people, what is changed.
	Change string
}

// RepairKind is what a Repair changes.
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
	// Replace says that Args holds all of the arguments so far.
	Replace bool
	// Provider is data that only this Model reads again, in a form of its adapter. It
	// replaces earlier data of the call.
	Provider json.RawMessage
	// Signed says that Provider is a signature of reasoning that led to the call.
	Signed bool
}

// A Response is a whole answer.
type Response struct {
	// Model is who answered, where there are several.
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

// A Call is a tool call as the model wrote it: Args may be anything, JSON or
// not, and is {} where the model wrote nothing. The engine parses, repairs and
// names it.
type Call struct {
	Name string
	Args string
}
