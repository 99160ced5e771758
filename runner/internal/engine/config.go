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

// A Reporter tells the Run's status how far the work has come.
type Reporter interface {
	// Begin returns once this attempt may ask the model. It is called before each turn,
	// until Accepted: a first attempt may begin before the API server has accepted a
	// request of it. What now returns in the first call is reported within a second, or
	// with what is reported first.
	Begin(ctx context.Context, now func() task.Progress) error
	// Accepted reports whether the API server has accepted a request, so that Begin
	// need not be called.
	Accepted() bool
	// Report takes over how far the work has come, to be told when it is worth it.
	// It does not block. All ask now themselves, one at a time, so that what
	// parallel calls tell is never overtaken by what was true before it.
	Report(now func() task.Progress)
	// Commit returns once what now said, or something later, is accepted.
	Commit(ctx context.Context, now func() task.Progress) error
}

// A Sink receives events as they happen, with their place in the tree of
// sessions. It does not block.
type Sink interface {
	Emit(scope step.Scope, message string, p events.Payload)
}

// A Model is a language model and what people know it by.
type Model struct {
	model.Model
	Name   string
	Params model.Params
	// Credential says, for people, where its key comes from.
	Credential string
	// Price puts the price of the Model of that name, at the time of the request, on
	// usage that we estimated ourselves; nil: unknown.
	Price func(name string, u step.Usage, at time.Time) step.Usage
	// Next says which Model is about to be asked, where there are several, and its
	// window and bound of output; nil: Name, Window and MaxOutput.
	Next func() (name string, window, maxOutput int64)
	// Window and MaxOutput are in tokens; 0: not known.
	Window, MaxOutput int64
}

// next is who is about to be asked, its window and its bound of output.
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

// Allows reports whether policies let a call be made without a person.
type Allows = toolcall.Allows

// An Actor is an agent ready to work in one session.
type Actor struct {
	Agent task.Agent
	// Place is where the agent works, for messages.
	Place place.Place
	// Model is who answers: a router where there are several.
	Model Model
	// Routes are tried in order before each turn: the Model of the first that applies is asked
	// in place of Model.
	Routes []Route
	// Summarizer is asked for summaries; nil: the Model of the turn itself.
	Summarizer *Model
	Tools      toolcall.Toolbox
	// Policy decides which calls are made, in its session and in those below it;
	// nil: all are.
	Policy toolcall.Policy
	// Stack is what stands around the calls of its session; it may be nil.
	Stack *middleware.Stack
	// Close releases what was made for the session alone. It is called once, when a
	// session below the Run's own has ended in this attempt; nil: nothing is to be
	// released.
	Close func()
	// Recall is called with each call that succeeded in an earlier attempt, for tools
	// that remember; nil where none does.
	Recall func(name string, args json.RawMessage)
}

// A Delegation is a piece of work for an agent of the pod.
type Delegation struct {
	tool.Delegation
	// Own is true if the agent delegates to itself: the tool named no agent.
	Own bool
}

// Config is everything that a Run needs.
type Config struct {
	Task task.Task
	// Actor is who works in the Run's own session.
	Actor Actor
	// Actors makes the one of the session that a call opens. The Delegation always
	// names its Agent, and its Call is the name of the session. The same one makes
	// the same Actor: a session that is resumed goes on with it. Nil: there are no
	// others.
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
	// Signals are what approvers, operator and kubelet say; nil: nothing.
	Signals signals.Source
	// CanAsk says that there are approvers: without them a call that needs an
	// approval is denied, and no limit is raised.
	CanAsk bool
	// CanStartRuns says that there is an operator, which creates child Runs.
	CanStartRuns bool

	// Digest is what people know a call by whom they approve: the same for the same
	// tool and arguments, however those are written. Nil: digest.Call.
	Digest func(tool string, args json.RawMessage) string

	// Durable says that the journal outlives this runner, and that another takes up
	// the work: with nothing to do but to wait, or paused, it leaves.
	Durable bool
	// Hold is for how long everything waits before it leaves; 0: two minutes.
	Hold time.Duration
	// Remind is how often the event of a wait for a model is repeated; 0: only with each try.
	Remind time.Duration
	// Busy says that something still runs that would end with this runner, which
	// therefore stays; nil: nothing does.
	Busy func() bool
	// Lost is what an earlier runner had running and this one has not, a line each:
	// a session that is resumed gets as a message.
	Lost []string
	// LostFiles are the places for files that an earlier attempt had written to and
	// that are empty now; a message tells the model.
	LostFiles []string
	// Unavailable are optional endpoints that could not be reached at the start: no
	// session has their tools, and the warning names them.
	Unavailable []journal.Remote
	// Captured is what a call that was cut has put out until then; nil: nothing is
	// known.
	Captured func(callID string) string

	// BuildPrompt adds what is read at the start to the prompt of the Run's own
	// session; nil: nothing. It shows only what allows lets the agent Read; see
	// tool.Session.Allows.
	BuildPrompt func(ctx context.Context, prompt string, allows Allows) string
	// LoadFile reads a file below the workspace that a user shows the agent. It reads only what
	// allows lets the agent Read. Nil: there is no workspace.
	LoadFile func(ctx context.Context, path string, allows Allows) (tool.File, error)
	// Attach keeps an image or a document and returns the part that shows it, or an error that
	// says what is wrong with it and what to do. Files reads them for requests. Nil: none is shown.
	Attach func(name string, data []byte) (step.Part, error)
	Files  model.Files
	// Offload puts the text of a result elsewhere where it is too large, and returns
	// what stands for it; nil: nowhere. It is called once for each result, behind
	// the redaction and before the record; its context ends with the Run.
	Offload func(ctx context.Context, call step.Call, text string) string

	// Watch is given what returns once the locks are free under which nothing waits
	// for a disk or the network: while it does not return the runner hangs. Nil:
	// nothing watches.
	Watch func(responds func())
	// LowSpace says whether the disk was found full once.
	LowSpace func() bool
	Now      func() time.Time
	// Began is when this runner began to use up the Run's duration.
	Began time.Time
}
