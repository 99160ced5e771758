// Package events has the events of a Run, which report its work to users and programs. Each is one JSON line of the
// runner's log, and listeners of a custom runner receive them as they happen.
//
// Do not base decisions on events: the state is in the journal and in the Run's status.
//
// payload.go lists the fields of each type of event.
package events

import (
	"encoding/json"
	"time"

	"github.com/deckhand-dev/deckhand/internal/shared/digest"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// An Event is one event as listeners receive it: before it has a number in the log, and
// with secrets, which the log redacts.
type Event struct {
	At time.Time
	// Scope is where in the tree of sessions it happened.
	Scope   step.Scope
	Message string
	Payload Payload
}

// LineVersion is the version of the form of a Line; within it fields are only added.
const LineVersion = 1

// A Line is one line of a runner's standard output: an Event without secrets, for users and programs. The state is in
// the journal and the Run's status, never in events.
type Line struct {
	V int `json:"v"`
	// N rises by one over all attempts of a Run; a gap is announced by a
	// dropped event.
	N       int64          `json:"n"`
	T       time.Time      `json:"t"`
	Run     string         `json:"run,omitempty"`
	Attempt int            `json:"attempt,omitempty"`
	Scope   step.Scope     `json:"scope,omitzero"`
	Type    step.EventType `json:"type"`
	// Message describes the event for users.
	Message string `json:"message,omitempty"`
	// Data is the Payload of the Event.
	Data json.RawMessage `json:"data,omitempty"`
}

// A Payload is the data of an event. Its Go type determines the type of the event.
type Payload interface {
	EventType() step.EventType
}

// Payloads has one of each type, in their usual order.
var Payloads = []Payload{
	RunStarted{},
	StepStarted{},
	ThinkingDelta{},
	TextDelta{},
	Reset{},
	Repaired{},
	ModelRouted{},
	CallStarted{},
	CallOutput{},
	CallDenied{},
	CallFinished{},
	StepFinished{},
	Nudged{},
	Compacted{},
	Pending{},
	Decided{},
	ChildStarted{},
	ChildFinished{},
	LimitNear{},
	Warning{},
	HostRefused{},
	StateChanged{},
	Dropped{},
	File{},
	Files{},
	RunFinished{},
}

// RunStarted opens the events of a runner that begins its work. A runner that cannot begin,
// for example because a Toolset is not available, emits only run.finished.
type RunStarted struct {
	Agent string `json:"agent"`
	Model string `json:"model"`
	// Steps is how many messages the session already has: more than 0 when it is
	// resumed.
	Steps int64 `json:"steps"`
	// Restarts is how often this attempt began again in its pod.
	Restarts int         `json:"restarts,omitempty"`
	Limits   task.Limits `json:"limits"`
}

// StateChanged reports that the state of the runner changed.
type StateChanged struct {
	// State is Interrupted: the pod is about to end; WaitingForModel: a model is unavailable;
	// Working: the runner continues; or Closing: a part of the cleanup failed.
	State string `json:"state"`
	// ModelWait is the wait for a model.
	ModelWait *task.ModelWait `json:"modelWait,omitempty"`
}

// StepStarted reports that a model is asked.
type StepStarted struct {
	// ID is the id that the turn has in the status, too: its calls are ID followed by c1, c2 and so on.
	ID string `json:"id"`
	// Step is the number in ID, as in all events of this turn: the number of the answer among the steps of its session.
	Step int64  `json:"step"`
	Kind string `json:"kind"` // Model or Tool
	Name string `json:"name"`
}

// TextDelta is a piece of the answer of a model.
type TextDelta struct {
	Step int64  `json:"step"`
	Text string `json:"text"`
}

// ThinkingDelta is a piece of a model's reasoning before its answer.
type ThinkingDelta struct {
	Step int64  `json:"step"`
	Text string `json:"text"`
}

// CallStarted reports that a call is about to be executed.
type CallStarted struct {
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

// CallOutput is a piece of a running call's output.
type CallOutput struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

// CallFinished reports that a call has its result.
type CallFinished struct {
	ID         string `json:"id"`
	Name       string `json:"name"`
	IsError    bool   `json:"isError"`
	Summary    string `json:"summary"`
	DurationMs int64  `json:"durationMs"`
}

// StepFinished carries a complete step of the session: readers of these may ignore the
// deltas.
type StepFinished struct {
	Step step.Step `json:"step"`
}

// Reset reports that all deltas of the step so far are void: the answer starts again.
type Reset struct {
	Step int64 `json:"step"`
}

// Nudged reports that the model got a notice on how to continue.
type Nudged struct {
	Text string `json:"text"`
}

// Compacted reports that steps were hidden from the model.
type Compacted struct {
	// Session is the call that opened the session; empty: the Run's own.
	Session string `json:"session,omitempty"`
	// Through is the number of the last message that was hidden, or whose results were cleared.
	Through int64 `json:"through"`
	// Before and After are how many tokens a request takes.
	Before int64 `json:"before"`
	After  int64 `json:"after"`
}

// Pending reports an open request to users or, if the call for a child Run was cancelled, to the operator. The status
// has the same fields; only here are the arguments of an Approval whole.
type Pending task.Pending

// ComputeDisplayDigest returns the digest of what a user sees of the request. The times are left out, because the
// status has them.
func (p Pending) ComputeDisplayDigest() string {
	all := []string{p.ID, p.Kind, p.Agent, p.Question, p.Tool, p.Args, p.Digest, p.Rule, p.Schema}
	if p.Approvers != nil {
		all = append(all, p.Approvers.Groups...)
		if len(p.Approvers.Users) > 0 {
			all = append(append(all, ""), p.Approvers.Users...) // no group has an empty name
		}
	}
	return digest.Display(all...)
}

// Decided reports how a request ended: with a Decision that applied or was refused, or without one in time.
type Decided struct {
	// Name is the name of the Decision.
	Name    string `json:"name,omitempty"`
	Request string `json:"request,omitempty"`
	// Refused is why the runner does not act on it; empty: it does.
	Refused string `json:"refused,omitempty"`
	// Type is Answer, Grant or Message.
	Type string `json:"type,omitempty"`
	By   string `json:"by,omitempty"`
}

// ChildStarted reports that a call opens or resumes the session of another agent, or that it requests a child Run or
// waits for it again.
type ChildStarted struct {
	// Session is the call, and the name of its session. For a child Run it is the id of the request in
	// status.progress.pending.
	Session string `json:"session"`
	Agent   string `json:"agent"`
	// Model is absent of a child Run.
	Model string `json:"model,omitempty"`
	// Args are the input of a child Run.
	Args json.RawMessage `json:"args,omitempty"`
	// Steps is how many messages the session already has.
	Steps int64 `json:"steps"`
}

// ChildFinished reports that the session of another agent, or a child Run, has ended.
type ChildFinished struct {
	Session string `json:"session"`
	// Run is the name of a child Run.
	Run   string `json:"run,omitempty"`
	Agent string `json:"agent"`
	// Reason is empty where no child Run was made.
	Reason task.Reason `json:"reason"`
	// Counts and Usage are those of the session and of the sessions below it. For a child Run only Usage is known.
	Counts task.Counts `json:"counts"`
	Usage  task.Usage  `json:"usage"`
}

// HostRefused reports, once for each host and port and for at most 256 of them, that a connection of a command in the
// sandbox was refused. Commands choose the names.
type HostRefused struct {
	Host string `json:"host"`
	Port int    `json:"port"`
	// Reason is NotListed or NotPublic, as in status.progress.refused.
	Reason string `json:"reason"`
	// ID is the id of the turn or call that had begun last.
	ID string `json:"id,omitempty"`
	// Step is the number in ID.
	Step int64 `json:"step"`
}

// Dropped reports that the events with the numbers From to To were not written.
type Dropped struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// RunFinished closes the events of a runner.
type RunFinished struct {
	Reason task.Reason     `json:"reason"`
	Text   string          `json:"text,omitempty"`
	Output json.RawMessage `json:"output,omitempty"`
	Counts task.Counts     `json:"counts"`
	Usage  task.Usage      `json:"usage"`
}

// Repaired reports that requests to a model are sent with a change, because its provider refused one without it, or
// would refuse it. The change is kept for the rest of the attempt.
type Repaired struct {
	Step int64 `json:"step"`
	// Kind is Field, Files, OutputLimit, Reasoning or ToolSchema.
	Kind string `json:"kind"`
	// Change describes the change.
	Change string `json:"change"`
	// Tool is the name of the tool whose schema is changed.
	Tool string `json:"tool,omitempty"`
}

// ModelRouted reports that a route of the agent chose another Model for a turn, that the Model could not be used, or
// that the expression failed.
type ModelRouted struct {
	// Step is the number of the turn that the Model answers. A hook that adds a message before it
	// makes it higher.
	Step int64 `json:"step"`
	// From is the Model of the last answer, or of the agent.
	From string `json:"from"`
	// To is the chosen Model.
	To string `json:"to"`
	// When is the expression of the route; empty: it has none, or the Model is the agent's own.
	When string `json:"when,omitempty"`
	// UncachedTokens is the input that From has in its prompt cache and To has not, as far as
	// providers reported that.
	UncachedTokens int64 `json:"uncachedTokens,omitempty"`
	// UncachedMicroUSD is how much more these tokens cost than from the cache of To, in millionths of a US dollar; 0:
	// nothing, or the prices are not known.
	UncachedMicroUSD int64 `json:"uncachedMicroUSD,omitempty"`
	// Kept is true if From answers on: the tool loop has reasoning that To cannot read.
	Kept bool `json:"kept,omitempty"`
	// Error is why the expression failed, so that To is the Model of the agent.
	Error string `json:"error,omitempty"`
}

// CallDenied reports that a call was not made, because a rule, a user or a hook denied it. The result of the call
// follows and has the same cause for the model.
type CallDenied struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// By is Policy, Approver, Timeout or Hook, as in status.progress.refused.
	By string `json:"by"`
	// Rule is the rule of a policy that denied the call, or the hook.
	Rule string `json:"rule,omitempty"`
	// Step is the number of the turn that wrote the call.
	Step int64 `json:"step"`
}

// LimitNear reports, once per limit, that most of it is used.
type LimitNear struct {
	Limit string `json:"limit"` // steps, modelCalls, toolCalls, tokens, cost or duration
	Used  int64  `json:"used"`
	Max   int64  `json:"max"`
}

// Warning describes what may be wrong although the work continues.
type Warning struct {
	Text string `json:"text"`
	// Step is the number of the turn under way.
	Step int64 `json:"step"`
}

// EventType names the event.
func (RunStarted) EventType() step.EventType { return step.EventRunStarted }

// EventType names the event.
func (StateChanged) EventType() step.EventType { return step.EventStateChanged }

// EventType names the event.
func (StepStarted) EventType() step.EventType { return step.EventStepStarted }

// EventType names the event.
func (TextDelta) EventType() step.EventType { return step.EventTextDelta }

// EventType names the event.
func (ThinkingDelta) EventType() step.EventType { return step.EventThinkingDelta }

// EventType names the event.
func (CallStarted) EventType() step.EventType { return step.EventCallStarted }

// EventType names the event.
func (CallOutput) EventType() step.EventType { return step.EventCallOutput }

// EventType names the event.
func (CallFinished) EventType() step.EventType { return step.EventCallFinished }

// EventType names the event.
func (StepFinished) EventType() step.EventType { return step.EventStepFinished }

// EventType names the event.
func (Reset) EventType() step.EventType { return step.EventReset }

// EventType names the event.
func (Nudged) EventType() step.EventType { return step.EventNudged }

// EventType names the event.
func (Compacted) EventType() step.EventType { return step.EventCompacted }

// EventType names the event.
func (Pending) EventType() step.EventType { return step.EventPending }

// EventType names the event.
func (Decided) EventType() step.EventType { return step.EventDecided }

// EventType names the event.
func (ChildStarted) EventType() step.EventType { return step.EventChildStarted }

// EventType names the event.
func (ChildFinished) EventType() step.EventType { return step.EventChildFinished }

// EventType names the event.
func (HostRefused) EventType() step.EventType { return step.EventHostRefused }

// EventType names the event.
func (Dropped) EventType() step.EventType { return step.EventDropped }

// EventType names the event.
func (RunFinished) EventType() step.EventType { return step.EventRunFinished }

// EventType names the event.
func (Repaired) EventType() step.EventType { return step.EventRepaired }

// EventType names the event.
func (ModelRouted) EventType() step.EventType { return step.EventModelRouted }

// EventType names the event.
func (CallDenied) EventType() step.EventType { return step.EventCallDenied }

// EventType names the event.
func (LimitNear) EventType() step.EventType { return step.EventLimitNear }

// EventType names the event.
func (Warning) EventType() step.EventType { return step.EventWarning }

// File is a part of a file that a Run without a volume made. The parts of a file follow one
// another, before the event files.
type File struct {
	// Path is relative to the workspace.
	Path string `json:"path"`
	// Size is the size of the whole file in bytes.
	Size int64 `json:"size"`
	// Offset is where in the file the part begins.
	Offset int64 `json:"offset"`
	// Data is the part in base64, at most 8190 bytes of the file. Secrets are replaced.
	Data []byte `json:"data"`
}

// Files lists the files that are in the log, and the files that are not.
type Files struct {
	// Files have path, size and sha256, the digest of the file as it is in the log.
	Files []LoggedFile `json:"files,omitempty"`
	// LeftOut are at most 20 files that are not in the log, with path, size and reason. Reasons
	// are TooLarge (the files have more than 1 MiB in all), TooMany (more than 64 files) and
	// NotFound (no file matches a pattern). Others are Pattern (a pattern is not valid),
	// Unreadable, Secret (a file that is not text has a secret) and Name (the name is not text
	// in one line).
	LeftOut []LeftOutFile `json:"leftOut,omitempty"`
	// More is how many others are not in the log.
	More int64 `json:"more,omitempty"`
}

// LoggedFile is a file that is in the log.
type LoggedFile struct {
	Path string `json:"path"`
	Size int64  `json:"size"`
	// SHA256 is the digest of the file as it is in the log.
	SHA256 string `json:"sha256"`
}

// LeftOutFile is a file that is not in the log.
type LeftOutFile struct {
	// Path is the file, or a pattern of output.files that no file matches.
	Path string `json:"path"`
	Size int64  `json:"size,omitempty"`
	// Reason is one of the reasons that LeftOut lists.
	Reason string `json:"reason"`
}

// The reasons why a file is not in the log.
const (
	LeftOutTooLarge   = "TooLarge"
	LeftOutTooMany    = "TooMany"
	LeftOutNotFound   = "NotFound"
	LeftOutPattern    = "Pattern"
	LeftOutUnreadable = "Unreadable"
	LeftOutSecret     = "Secret"
	LeftOutName       = "Name"
)

// Bounds of the files in a log.
const (
	MaxLoggedBytes = 1 << 20
	MaxLoggedFiles = 64
	MaxLeftOut     = 20
	// FilePart is the maximum size of a part of a file in one event. It is a multiple of 3, so that the base64 of the
	// parts can be joined, and so small that container runtimes do not split the line (16 KiB).
	FilePart = 8190
)

// EventType names the event.
func (File) EventType() step.EventType { return step.EventFile }

// EventType names the event.
func (Files) EventType() step.EventType { return step.EventFiles }
