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
	// Append records r. When it returns, r survives a crash of the process and of the node, as long as the disk does.
	// It numbers the record and is safe for concurrent use.
	Append(r Record) error
	// Read returns the whole journal, oldest first. An error ends the sequence.
	Read() iter.Seq2[Record, error]
}

// A Record is one entry of a journal. Its Kind determines which fields are set.
type Record struct {
	// Seq is contiguous over all attempts, from 1.
	Seq  int64 `json:"seq"`
	Kind Kind  `json:"kind"`
	// At is the time of the record; zero: the time at which it is appended.
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
	// Meter is the usage of the Run when this was recorded.
	Meter *step.Meter `json:"meter,omitempty"`
	// Accounts are the usage of its session and of each session above it, in this order. The Run's own session is not
	// among them: its usage is the Meter.
	Accounts []step.Meter `json:"accounts,omitempty"`
	Mark     *Mark        `json:"mark,omitempty"`
	// Hide is what a compaction hides from the model.
	Hide *Hide `json:"hide,omitempty"`
	// Request is a request that is about to be made.
	Request *Request `json:"request,omitempty"`
	// Decision is a Decision that the runner acted on.
	Decision *Decision `json:"decision,omitempty"`
	// Child is the result of a child Run. Its usage is in the Meter and the Accounts of the same record, so that it is
	// charged once.
	Child *Child `json:"child,omitempty"`
}

// Kind is the kind of a Record.
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

// FormatVersion is the version of the records. A journal with a newer version is refused. Only a journal that continues
// that of another Run has it, all others have version 1.
const FormatVersion = 2

// A Header opens the file of one attempt.
type Header struct {
	Version int    `json:"version"`
	RunUID  string `json:"runUID"`
	Attempt int    `json:"attempt"`
	// After is the last record of earlier attempts that this attempt continues.
	After int64 `json:"after"`
	// Continues is set in the first header of a Run that continues another. That Run's records precede it.
	Continues *Continued `json:"continues,omitempty"`
}

// An Intent records what is about to be done. A reader who finds it without a result knows that the effect may have
// happened.
type Intent struct {
	// CallID is empty for a model call.
	CallID string `json:"callID,omitempty"`
	// Name is the name of the tool or of the Model.
	Name string `json:"name"`
	// Args are the final arguments, in canonical form.
	Args json.RawMessage `json:"args,omitempty"`
	// Written is the digest of the arguments from which the tool computed Args; empty: the tool has no canonical form,
	// or an older runner wrote this.
	Written string `json:"written,omitempty"`
	// Effect is the tool's effect class.
	Effect string `json:"effect,omitempty"`
	// InputTokens is the estimated input of a model call, including the tokens of Before.
	InputTokens int64 `json:"inputTokens,omitempty"`
	// Before is the usage of earlier requests of an answer that paused; nil: there are none, or an older runner wrote
	// this.
	Before *step.Usage `json:"before,omitempty"`
}

// A Hide hides steps from the model; the journal keeps them.
type Hide struct {
	// Through is the last step that is hidden, or whose results are cleared. The first message of the user is never
	// hidden.
	Through int64 `json:"through"`
	// Summary replaces the hidden steps. If it is empty, only the contents of tool results are cleared.
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
	// Since is when a model became unavailable; zero: it is available again. Until is the time that its provider named
	// for the next request; zero: none.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// BrokeOff reports that an available provider broke off its answer.
	BrokeOff bool `json:"brokeOff,omitempty"`
}

// MarkType is the type of a Mark.
type MarkType string

// The marks.
const (
	MarkRestarted MarkType = "restarted" // the same attempt runs again, in the same pod
	MarkEnded     MarkType = "ended"     // the attempt ended, for the reason in the text
	MarkNotice    MarkType = "notice"    // what the runner has to say to the model before its next turn
	MarkRoute     MarkType = "route"     // from the next turn on, the Model in the text is asked
	MarkOutage    MarkType = "outage"    // the session waits for a model that is unavailable, or no longer does
)

// A Remote is an endpoint outside of the pod at which a tool was called, as users configured it.
type Remote struct {
	// Name names the object that the endpoint belongs to, such as "toolset weather".
	Name string `json:"name"`
	// Field is the field in which the endpoint is configured.
	Field string `json:"field,omitempty"`
	// Unreachable is why it could not be reached; empty: it was reached.
	Unreachable string `json:"unreachable,omitempty"`
}

// A Request is a request to users, for approval of a call or to raise a limit, or a request to the operator for a child
// Run. A resumed session repeats the request; its time counts from this record.
type Request struct {
	// ID is the id that a Decision names.
	ID string `json:"id"`
	// CallID is the call that waits for it; empty: it is about a limit.
	CallID string `json:"callID,omitempty"`
	// Digest is the digest of the call.
	Digest string `json:"digest,omitempty"`
	// Args are the canonical arguments of the call, and Written the digest of the arguments from which the tool
	// computed them; empty: the tool has no canonical form, or an older runner wrote this.
	Args    json.RawMessage `json:"args,omitempty"`
	Written string          `json:"written,omitempty"`
	// Groups and Users are the approvers: the users, and the members of the groups. Without both, every user who may
	// create Decisions is an approver.
	Groups []string `json:"groups,omitempty"`
	Users  []string `json:"users,omitempty"`
	Source
	// Delegation is the task of the requested child Run; nil: the request is to users.
	Delegation *Delegation `json:"delegation,omitempty"`
}

// A Source is what requires an approval: a rule in the policy of an agent, for a tool.
type Source struct {
	Agent string `json:"agent,omitempty"`
	Rule  string `json:"rule,omitempty"`
	Tool  string `json:"tool,omitempty"`
}

// A Decision is a Decision of a user that the runner acted on.
type Decision struct {
	// Name is the name of the Decision object, By the user who created it.
	Name string `json:"name"`
	By   string `json:"by,omitempty"`
	// Request is the id of the request; empty for a message.
	Request string `json:"request,omitempty"`
	// Type is Approve, Deny, Answer, Grant or Message.
	Type string `json:"type"`
	// Digest is the digest of the call that an Approve or a Deny is about. Scope is Run if an Approve counts for all
	// calls of its Source. Reason is the user's reason.
	Digest string `json:"digest,omitempty"`
	Scope  string `json:"scope,omitempty"`
	Reason string `json:"reason,omitempty"`
	Source
	// Value is the answer. A message is recorded as a step instead.
	Value string `json:"value,omitempty"`
	// Images are the files of the workspace that are attached to a message that answers a question.
	Images []string `json:"images,omitempty"`
	// Refused is why the runner did not act on the Decision; empty: it did.
	Refused string `json:"refused,omitempty"`
	// Steps, Tokens and CostMicroUSD are granted on top of the limits.
	Steps        int64 `json:"steps,omitempty"`
	Tokens       int64 `json:"tokens,omitempty"`
	CostMicroUSD int64 `json:"costMicroUSD,omitempty"`
}

// A Delegation is the task of a child Run that a call requests.
type Delegation struct {
	// Agent is the name of the agent that does it, Args its whole input as canonical JSON.
	Agent string `json:"agent"`
	Args  string `json:"args"`
}

// A Child is the result of a child Run, or why there is none.
type Child struct {
	// Request is the id of the request for it.
	Request string `json:"request"`
	// Run is the name of the child Run; empty: none was created, and Message has the cause.
	Run     string `json:"run,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	Text    string `json:"text,omitempty"`
	Output  string `json:"output,omitempty"`
	// Usage is the usage that was charged for it.
	Usage step.Usage `json:"usage,omitzero"`
}

// reserveSize is far more than it takes to record how a Run ended.
const reserveSize = 32 << 20

func reservePath(dir string) string { return filepath.Join(dir, "reserve") }

// reserveSpace reserves space for when the disk is full. If the disk is already full, the journal works without the
// reserve.
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
