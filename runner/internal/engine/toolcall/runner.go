// Package toolcall runs the tool calls of a session, each to its one result.
//
// Execute plans the calls of a turn (execute.go): which run side by side, which
// behind others. A call is run to its result (call.go): its arguments become
// canonical (canonical.go), the layers around it see it, then what they made of it
// must be permitted (permit.go), and is recorded before the tool is called (run.go).
// A tool may ask a person (session.go), have another agent work or have a child Run
// (delegate.go). What an earlier runner left without a result is settled when the
// session is resumed (lost.go).
package toolcall

import (
	"context"
	"encoding/json"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/engine/approval"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/meter"
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/internal/state"
	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A Toolbox knows the tools of a session.
type Toolbox interface {
	// Specs are the tools as the model sees them, in an order that never changes.
	Specs() []step.Tool
	// Find returns the tool of that name.
	Find(name string) (tool.Tool, bool)
	// Read makes the arguments that a model wrote for a tool valid JSON: what it
	// meant, or else what it wrote as a JSON string.
	Read(name, raw string) json.RawMessage
	// Check holds arguments to the tool's schema; nil means they fit.
	Check(name string, args json.RawMessage) *tool.Error
}

// A Session is whose calls are run.
type Session interface {
	// SafePoint returns once something new may begin, or why nothing may.
	SafePoint(ctx context.Context) error
	// Delegate has another agent work in a session below, for a call. An error ends
	// the Run, or leaves the call open.
	Delegate(ctx context.Context, d tool.Delegation) (tool.Result, error)
	// Below is the runner of a session below, to which nothing goes back.
	Below(name string) *Runner
	Status
}

// Records are where the results of calls go.
type Records interface {
	approval.Session
	// Account is what the calls are counted into.
	Account() *meter.Account
}

// A Status shows what calls do.
type Status interface {
	// BeginEffects returns once the operator knows that the work can no longer simply
	// be done again.
	BeginEffects(ctx context.Context) error
	// ShowStarted shows a call that is about to run, ShowFinished one that has its
	// result, in a line.
	ShowStarted(call step.Call, args json.RawMessage)
	ShowFinished(call step.Call, result step.Step, line string)
	// ShowDenied shows a call that was denied, before ShowFinished.
	ShowDenied(call step.Call, denied Denial)
}

// Config is what all calls of a Run share.
type Config struct {
	State    *state.Store
	Requests *approval.Requests
	Activity *approval.Activity
	Signals  signals.Source
	Redact   *redact.Redactor
	Now      func() time.Time
	// CanAsk says that there are approvers, CanStartRuns that an operator creates
	// child Runs.
	CanAsk, CanStartRuns bool
	// Digest is what approvers know a call by.
	Digest func(tool string, args json.RawMessage) string
	// LoadFile reads a file below the workspace that a user names, if allows lets the agent read
	// it; nil: there is no workspace.
	LoadFile func(ctx context.Context, path string, allows Allows) (tool.File, error)
	// Attach keeps an image or a document and returns the part that shows it; nil: none is shown.
	Attach func(name string, data []byte) (step.Part, error)
	// Offload puts a text that is too large elsewhere; nil: nowhere.
	Offload func(ctx context.Context, call step.Call, text string) string
	// Captured is what a call that was cut has put out until then; nil: unknown.
	Captured func(callID string) string
}

// Options are those of one session.
type Options struct {
	// Name is the call that opened the session; empty: the Run's own.
	Name  string
	Scope step.Scope
	// Agent is the name of its agent, Parallel how many of its calls run at once.
	Agent    string
	Parallel int
	Tools    Toolbox // may be nil
	Stack    *middleware.Stack
	Policy   Policy  // may be nil
	Parent   *Runner // of the session above; nil: there is none
}

// A Runner runs the tool calls of one session.
type Runner struct {
	config   *Config
	session  Session
	records  Records
	options  Options
	policies policies
	specs    []step.Tool
	act      middleware.ToolFunc // the tool call behind the layers
	calls    []*toolCall         // of the turn under way
}

// NewRunner returns the runner of a session.
func NewRunner(c *Config, s Session, to Records, o Options) *Runner {
	r := &Runner{config: c, session: s, records: to, options: o}
	r.policies = policies{state: c.State, options: &r.options}
	if o.Tools != nil {
		r.specs = o.Tools.Specs()
	}
	r.act = o.Stack.Tool(r.runBehindLayers)
	return r
}

// Allows reports whether policies let a call be made without a person.
func (r *Runner) Allows(ctx context.Context, name string, args json.RawMessage) bool {
	return r.policies.allows(ctx, name, args)
}

// read is the session as it stands.
func (r *Runner) read() state.Session { return r.config.State.Session(r.options.Name) }

// ended says whether a call has ended the session.
func (r *Runner) ended() bool { return r.read().Ending != nil }

// stopped says whether the Run was asked to end.
func (r *Runner) stopped() bool {
	now, _ := r.config.Signals.Current()
	return now.Stopped
}
