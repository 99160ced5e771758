package journal

import (
	"encoding/json"
	"time"

	"github.com/deckhand-dev/deckhand/runner/step"
)

// A Record is one entry of a journal. Which of its fields are set goes by Kind.
type Record struct {
	// Seq is contiguous over all attempts, from 1.
	Seq  int64 `json:"seq"`
	Kind Kind  `json:"kind"`
	// At is when; zero: when it is appended.
	At time.Time `json:"at,omitzero"`
	// Session is the session that the record belongs to; empty: the Run's own.
	Session string `json:"session,omitempty"`

	Header *Header    `json:"header,omitempty"`
	Step   *step.Step `json:"step,omitempty"`
	Intent *Intent    `json:"intent,omitempty"`
	// Ending is set on the result of a call that ends the Run.
	Ending *Ending `json:"ending,omitempty"`
	// Remote is set on the result of a call that was made outside of the pod.
	Remote *Remote `json:"remote,omitempty"`
	// Meter is what the Run had used when this was recorded.
	Meter *step.Meter `json:"meter,omitempty"`
	// Accounts are what its session had used, with those below it, then the one
	// above it, and so on; that of the Run's own is the Meter.
	Accounts []step.Meter `json:"accounts,omitempty"`
	Mark     *Mark        `json:"mark,omitempty"`
	// Hide is what a compaction takes out of the model's sight.
	Hide *Hide `json:"hide,omitempty"`
	// Request is what a person, or for a child Run the operator, is about to be
	// asked.
	Request *Request `json:"request,omitempty"`
	// Decision is what a person decided and the runner acted on.
	Decision *Decision `json:"decision,omitempty"`
	// Child is how a child Run ended. What it used is in the Meter and the Accounts
	// of the same record: it is charged once.
	Child *Child `json:"child,omitempty"`
}

// Kind says what a Record holds.
type Kind string

// The kinds of records.
const (
	KindHeader Kind = "header" // opens the file of an attempt
	KindStep   Kind = "step"   // what the user or the model said
	KindIntent Kind = "intent" // a model call or a tool call is about to begin
	KindResult Kind = "result" // a tool's step; those of one turn come in the order of completion
	KindMeter  Kind = "meter"  // a model call failed: what it used all the same
	KindMark   Kind = "mark"   // something about the session itself
	KindHide   Kind = "hide"   // steps that the model no longer sees
	KindAsk    Kind = "ask"    // what a person is about to be asked, where no intent says so, or the operator
	KindDecide Kind = "decide" // what a person decided
	KindChild  Kind = "child"  // how a child Run ended that a call waits for
)

// FormatVersion is the version of the records; a journal of a newer one is
// refused.
const FormatVersion = 1

// A Header opens the file of one attempt.
type Header struct {
	Version int    `json:"version"`
	RunUID  string `json:"runUID"`
	Attempt int    `json:"attempt"`
	// After is the last record of the attempts before that this one builds upon.
	After int64 `json:"after"`
}

// An Intent says what is about to be done, so that a reader who finds it without a
// result knows that it may have happened.
type Intent struct {
	// CallID is empty for a model call.
	CallID string `json:"callID,omitempty"`
	// Name is the tool's, or the Model's.
	Name string `json:"name"`
	// Args are final: what is executed, in its canonical form.
	Args json.RawMessage `json:"args,omitempty"`
	// Written is the digest of the arguments of which the tool made Args; empty:
	// the tool has no canonical form, or an older runner wrote this.
	Written string `json:"written,omitempty"`
	// Effect is the tool's effect class.
	Effect string `json:"effect,omitempty"`
	// InputTokens is the estimated input of a model call, with all tokens of Before.
	InputTokens int64 `json:"inputTokens,omitempty"`
	// Before is what the requests before this one used, of an answer that paused; nil: there
	// are none, or an older runner wrote this.
	Before *step.Usage `json:"before,omitempty"`
}

// A Hide takes steps out of the model's sight; the journal keeps them.
type Hide struct {
	// Through is the last step that is hidden, or whose results are cleared; the
	// first user's step is never.
	Through int64 `json:"through"`
	// Summary stands for the hidden steps. Without one only the content of tool
	// results goes.
	Summary string `json:"summary,omitempty"`
}

// An Ending is what a call that ends the Run committed.
type Ending struct {
	// Tool is finish or reject.
	Tool   string          `json:"tool"`
	Text   string          `json:"text,omitempty"`
	Output json.RawMessage `json:"output,omitempty"`
}

// A Mark is a note about the session.
type Mark struct {
	Type MarkType `json:"type"`
	// Text is the reason of an end, a notice, or the Model of a route.
	Text string `json:"text,omitempty"`
	// Since is when a model became unavailable; zero: it no longer is. Until is the time that
	// its provider named for the next request; zero: none.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// BrokeOff reports that the provider was there and broke off its answer.
	BrokeOff bool `json:"brokeOff,omitempty"`
}

// MarkType is what a Mark is about.
type MarkType string

// The marks.
const (
	MarkRestarted MarkType = "restarted" // the same attempt runs again, in the same pod
	MarkEnded     MarkType = "ended"     // the attempt ended, for the reason in the text
	MarkNotice    MarkType = "notice"    // what the runner has to say to the model before its next turn
	MarkRoute     MarkType = "route"     // from the next turn on, the Model in the text is asked
	MarkOutage    MarkType = "outage"    // the session waits for a model that is unavailable, or no longer does
)

// A Remote is an endpoint outside of the pod that a tool was called at, as its
// owner configured it.
type Remote struct {
	// Name is whose endpoint it is, such as "toolset weather".
	Name string `json:"name"`
	// Field is what in the configuration names it.
	Field string `json:"field,omitempty"`
	// Unreachable says why it could not be reached; empty: it was reached.
	Unreachable string `json:"unreachable,omitempty"`
}
