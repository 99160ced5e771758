package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/deckhand-dev/deckhand/runner/step"
)

// A Log is where the loop records what it does, before it does it.
type Log interface {
	// Append records r; when it returns, r survives the death of the process and
	// of the node, as long as its disk does. It numbers the record and is safe for
	// concurrent use.
	Append(r Record) error
	// Read returns the whole journal, oldest first. An error ends it.
	Read() iter.Seq2[Record, error]
}

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

// A Request is what a person is about to be asked: whether a call may be made,
// or for more of what is used up. Or it is what the operator is asked for a
// child Run. Who takes up the session asks the same, and counts the time from
// here on.
type Request struct {
	// ID is what a Decision names.
	ID string `json:"id"`
	// CallID is the call that waits for it; empty: a limit does.
	CallID string `json:"callID,omitempty"`
	// Digest is that of the call as it would be made.
	Digest string `json:"digest,omitempty"`
	// Args are the canonical arguments of the call, and Written the digest of the
	// arguments of which the tool made them; empty: the tool has no canonical form,
	// or an older runner wrote this.
	Args    json.RawMessage `json:"args,omitempty"`
	Written string          `json:"written,omitempty"`
	// Groups and Users are the approvers: the members of the groups, and the users; without
	// both, all users who may decide at all.
	Groups []string `json:"groups,omitempty"`
	Users  []string `json:"users,omitempty"`
	Source
	// Delegation is what a child Run is wanted for; nil: a person is asked.
	Delegation *Delegation `json:"delegation,omitempty"`
}

// A Source is what wants a person to be asked about a call: a rule, in the
// policy of an agent, about a tool.
type Source struct {
	Agent string `json:"agent,omitempty"`
	Rule  string `json:"rule,omitempty"`
	Tool  string `json:"tool,omitempty"`
}

// A Decision is what a person decided, as the runner acted on it.
type Decision struct {
	// Name is the name of the Decision object, By who made it.
	Name string `json:"name"`
	By   string `json:"by,omitempty"`
	// Request is the id of what was asked; empty for a message.
	Request string `json:"request,omitempty"`
	// Type is Approve, Deny, Answer, Grant or Message.
	Type string `json:"type"`
	// Digest is that of the call which an Approve or a Deny is about; Scope is Run
	// where an Approve is good for all calls of its Source; Reason is why.
	Digest string `json:"digest,omitempty"`
	Scope  string `json:"scope,omitempty"`
	Reason string `json:"reason,omitempty"`
	Source
	// Value is the answer; a message is a step.
	Value string `json:"value,omitempty"`
	// Images are the files below the workspace that a message shows which answers a question.
	Images []string `json:"images,omitempty"`
	// Refused says why the runner could not act on it; empty when it did.
	Refused string `json:"refused,omitempty"`
	// Steps, Tokens and CostMicroUSD are what is granted on top of the limits.
	Steps        int64 `json:"steps,omitempty"`
	Tokens       int64 `json:"tokens,omitempty"`
	CostMicroUSD int64 `json:"costMicroUSD,omitempty"`
}

// A Delegation is a piece of work that a call has the operator make a child Run
// for.
type Delegation struct {
	// Agent is the name of the agent that does it, Args its whole input as canonical
	// JSON.
	Agent string `json:"agent"`
	Args  string `json:"args"`
}

// A Child is how a child Run ended, or why there is none.
type Child struct {
	// Request is what asked for it.
	Request string `json:"request"`
	// Run is its name; empty: none was made, and Message says why.
	Run     string `json:"run,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	Text    string `json:"text,omitempty"`
	Output  string `json:"output,omitempty"`
	// Usage is what was charged for it.
	Usage step.Usage `json:"usage,omitzero"`
}

// reserveSize is enough to record how a Run ended, many times over.
const reserveSize = 32 << 20

func reservePath(dir string) string { return filepath.Join(dir, "reserve") }

// reserveSpace reserves space on the disk for when it is full. A disk that is already
// full has none; the journal works without it.
func reserveSpace(dir string) error {
	f, err := os.OpenFile(reservePath(dir), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.ENOSPC) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reserving space: %w", err)
	}
	if err := syscall.Fallocate(int(f.Fd()), 0, 0, reserveSize); err != nil {
		return errors.Join(f.Close(), os.Remove(f.Name()))
	}
	return f.Close()
}

// releaseSpace deletes the reserve, and reports whether there was one.
func (d *Dir) releaseSpace() bool {
	if err := os.Remove(reservePath(d.opts.Dir)); err != nil {
		return false
	}
	if d.opts.LowSpace != nil {
		d.opts.LowSpace()
	}
	return true
}
