package engine

import (
	"context"
	"encoding/json"
	"time"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/toolcall"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/place"
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A Reporter reports the progress of the Run to the operator.
type Reporter interface {
	// Begin returns when this attempt may ask the model. It is called before each turn until Accepted returns true: a
	// first attempt may start before the API server has accepted a request from it. The progress that the first call is
	// given is reported within a second, or with the first report.
	Begin(ctx context.Context, now func() task.Progress) error
	// Accepted reports whether the API server has accepted a request, so that Begin
	// need not be called.
	Accepted() bool
	// Report takes a function that returns the progress, and calls it when the next report is due. It does not block.
	// All reports call their function themselves, one at a time, so that an older value never replaces a newer one.
	Report(now func() task.Progress)
	// Commit returns when the progress that now returned, or a later one, is accepted.
	Commit(ctx context.Context, now func() task.Progress) error
}

// A Sink receives events as they happen, with their place in the tree of
// sessions. It does not block.
type Sink interface {
	Emit(scope step.Scope, message string, p events.Payload)
}

// A Model is a language model, with its names for users.
type Model struct {
	model.Model
	Name   string
	Params model.Params
	// Credential describes, for users, where the API key comes from.
	Credential string
	// Price puts the price of the Model of that name, at the time of the request, on
	// usage that we estimated ourselves; nil: unknown.
	Price func(name string, u step.Usage, at time.Time) step.Usage
	// Next returns which Model is asked next, if there are several, with its window and its maximum output; nil: Name,
	// Window and MaxOutput.
	Next func() (name string, window, maxOutput int64)
	// Window and MaxOutput are in tokens; 0: not known.
	Window, MaxOutput int64
}

// next returns which Model is asked next, with its window and its maximum output.
func (m *Model) next() (name string, size, maxOutput int64) {
	if m.Next == nil {
		return m.Name, m.Window, m.MaxOutput
	}
	return m.Next()
}

// priced puts a price on usage that we estimated, of a request that was sent at a time.
func (m *Model) priced(name string, u step.Usage, at time.Time) step.Usage {
	if m.Price == nil {
		return u
	}
	return m.Price(name, u, at)
}

// Allows reports whether policies let a call be made without asking a user.
type Allows = toolcall.Allows

// An Actor is an agent ready to work in one session.
type Actor struct {
	Agent task.Agent
	// Place is where the agent works, for messages.
	Place place.Place
	// Model answers the turns. It is a router if there are several Models.
	Model Model
	// Routes are tried in order before each turn. The Model of the first route that applies is asked instead of Model.
	Routes []Route
	// Summarizer writes summaries; nil: the Model of the turn does.
	Summarizer *Model
	Tools      toolcall.Toolbox
	// Policy decides which calls of its session, and of the sessions below it, are made; nil: all are.
	Policy toolcall.Policy
	// Stack has the layers around the calls of the session; it may be nil.
	Stack *middleware.Stack
	// Close releases what was made for this session only. It is called once, after a session below the Run's own has
	// ended in this attempt; nil: there is nothing to release.
	Close func()
	// Recall is called with each call that succeeded in an earlier attempt, for tools that keep state; nil: no tool
	// does.
	Recall func(name string, args json.RawMessage)
}

// A Delegation is a task for another agent in the pod.
type Delegation struct {
	tool.Delegation
	// Own is true if the agent delegates to itself: the call named no agent.
	Own bool
}

// Config has everything that a Run needs.
type Config struct {
	Task task.Task
	// Actor is the agent of the Run's own session.
	Actor Actor
	// Actors makes the agent of the session that a call opens. The Delegation always names its Agent, and its Call is
	// the name of the session. Equal Delegations make equal Actors, because a resumed session must continue with the
	// same one. Nil: there are no other agents.
	Actors func(d Delegation) (*Actor, error)

	Journal journal.Log
	Events  Sink
	Report  Reporter
	// Denied is called with each tool call that was denied, with what denied it, one of the
	// task.DeniedBy constants, and the id of the call for the status; nil: it is not counted.
	Denied func(tool, by, id string)
	// StepBegan is called with the id of each turn and call that begins, for the status; nil: it is not
	// called.
	StepBegan func(id string)
	Redact    *redact.Redactor
	// Signals has the signals of approvers, operator and kubelet; nil: there are none.
	Signals signals.Source
	// CanAsk reports whether approvers exist. Without them a call that needs an approval is denied, and no limit is
	// raised.
	CanAsk bool
	// CanStartRuns reports whether an operator creates child Runs.
	CanStartRuns bool

	// Digest identifies a call to approvers. It is equal for equal tools and arguments, independent of how the
	// arguments are written. Nil: digest.Call.
	Digest func(tool string, args json.RawMessage) string

	// Durable reports that the journal outlives this runner, and that another runner can resume the Run. A runner that
	// only waits, or is paused, then leaves.
	Durable bool
	// Hold is how long the whole Run waits before the runner leaves; 0: two minutes.
	Hold time.Duration
	// Remind is how often the event of a wait for a model is repeated; 0: only with each try.
	Remind time.Duration
	// Busy reports whether something runs that would end with this runner, which therefore stays; nil: nothing does.
	Busy func() bool
	// Lost describes, in one line each, what an earlier runner had running and this one does not have. Each resumed
	// session gets it as a message.
	Lost []string
	// LostFiles are the places for files that an earlier attempt had written to and
	// that are empty now; a message tells the model.
	LostFiles []string
	// Unavailable are the optional endpoints that could not be reached at the start. No session has their tools, and
	// the warning of the Run names them.
	Unavailable []journal.Remote
	// Captured returns the output of an interrupted call up to the interruption; nil: it is not known.
	Captured func(callID string) string

	// BuildPrompt adds texts that are read at the start, such as AGENTS.md, to the prompt of the Run's own session;
	// nil: nothing. It adds only files that allows lets the agent Read; see tool.Session.Allows.
	BuildPrompt func(ctx context.Context, prompt string, allows Allows) string
	// LoadFile reads a file of the workspace that a user attached to a message. It reads only files that allows lets
	// the agent Read. Nil: there is no workspace.
	LoadFile func(ctx context.Context, path string, allows Allows) (tool.File, error)
	// Attach stores an image or a document and returns the part that shows it. The error describes what is wrong with
	// the file and what to do. Nil: files are not shown.
	Attach func(name string, data []byte) (step.Part, error)
	Files  model.Files
	// Offload stores the text of a result elsewhere if it is too large, and returns the text that replaces it; nil: no
	// text is stored. It is called once for each result, after redaction and before the record. Its context ends with
	// the Run.
	Offload func(ctx context.Context, call step.Call, text string) string

	// Watch gets a function that returns when the locks are free under which no disk or network access happens. The
	// runner hangs if it does not return. Nil: hanging is not detected.
	Watch func(responds func())
	// LowSpace reports whether the disk was ever full.
	LowSpace func() bool
	Now      func() time.Time
	// Began is when this runner started to count against limits.duration.
	Began time.Time
}
