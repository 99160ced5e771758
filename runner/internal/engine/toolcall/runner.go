// Package toolcall runs the tool calls of a session, each to exactly one result.
//
// Execute plans the calls of a turn (execute.go): which run in parallel, and which wait for others. The steps of a call
// (call.go): its arguments become canonical, the layers around it may change them, the policies or a user must allow
// the result (permit.go), and it is recorded before the tool is called (run.go). A tool may ask a user, and delegate to
// another agent or to a child Run (delegate.go). Calls that an earlier runner left without a result get one when the
// session is resumed (lost.go).
package toolcall

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/engine/approval"
	"github.com/deckhand-dev/deckhand/runner/internal/engine/meter"
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/internal/signals"
	"github.com/deckhand-dev/deckhand/runner/internal/state"
	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A Toolbox knows the tools of a session.
type Toolbox interface {
	// Specs are the tools as the model sees them, in an order that never changes.
	Specs() []step.Tool
	// Find returns the tool of that name.
	Find(name string) (tool.Tool, bool)
	// Read repairs the arguments that a model wrote for a tool. Text that cannot be repaired becomes a JSON string.
	Read(name, raw string) json.RawMessage
	// Check validates arguments against the tool's schema; nil means they are valid.
	Check(name string, args json.RawMessage) *tool.Error
}

// A Session is the session whose calls a Runner runs.
type Session interface {
	// SafePoint returns when something new may begin, or an error that says why nothing may.
	SafePoint(ctx context.Context) error
	// Delegate has another agent work in a session below this one, for a call. An error ends the Run, or leaves the
	// call open.
	Delegate(ctx context.Context, d tool.Delegation) (tool.Result, error)
	// Below returns the runner of a session below, which is not resumed any more.
	Below(name string) *Runner
	Status
}

// Records record the results of calls.
type Records interface {
	approval.Session
	// Account counts the calls.
	Account() *meter.Account
}

// A Status shows calls in the status of the Run.
type Status interface {
	// BeginEffects returns after the operator has recorded that effects begin: the work can no longer be repeated
	// safely.
	BeginEffects(ctx context.Context) error
	// ShowStarted shows a call that is about to run, ShowFinished the result of a call, as one line.
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
	// CanAsk reports whether approvers exist, CanStartRuns whether an operator creates child Runs.
	CanAsk, CanStartRuns bool
	// Digest identifies a call to approvers.
	Digest func(tool string, args json.RawMessage) string
	// LoadFile reads a file of the workspace that a user attached, if allows lets the agent read it; nil: there is no
	// workspace.
	LoadFile func(ctx context.Context, path string, allows Allows) (tool.File, error)
	// Attach stores an image or a document and returns the part that shows it; nil: files are not shown.
	Attach func(name string, data []byte) (step.Part, error)
	// Offload stores a text that is too large elsewhere; nil: no text is stored.
	Offload func(ctx context.Context, call step.Call, text string) string
	// Captured returns the output of an interrupted call up to the interruption; nil: it is not known.
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

// Allows reports whether policies let a call be made without asking a user.
func (r *Runner) Allows(ctx context.Context, name string, args json.RawMessage) bool {
	return r.policies.allows(ctx, name, args)
}

// read returns the current session.
func (r *Runner) read() state.Session { return r.config.State.Session(r.options.Name) }

// ended reports whether a call has ended the session.
func (r *Runner) ended() bool { return r.read().Ending != nil }

// stopped reports whether the Run was asked to end.
func (r *Runner) stopped() bool {
	now, _ := r.config.Signals.Current()
	return now.Stopped
}

// A toolSession is what a tool may use of its session: questions, delegation, and what the policies allow.
type toolSession struct {
	runner *Runner
	call   step.Call

	mu     sync.Mutex
	active int  // how often the call is in another session, or asks a person
	closed bool // the result of the call does not wait for it
	// shown has the files that users attached to answers to the call: each is a part that shows the file, or a line
	// that explains why it is not shown.
	shown []step.Part
}

var _ tool.Session = (*toolSession)(nil)

// close forbids the call to use its session. It returns false, and forbids nothing, while the call has another session
// open.
func (s *toolSession) close() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = s.active == 0
	return s.closed
}

// enter precedes each use of the session by the call. It fails for a call that already has its result.
func (s *toolSession) enter(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if s.closed {
		return errTimeout
	}
	s.active++
	return nil
}

func (s *toolSession) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active--
}

// isOnlyActive reports whether this is the only session that the call has open.
func (s *toolSession) isOnlyActive() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.active == 1
}

// Authorize implements [tool.Session].
func (s *toolSession) Authorize(ctx context.Context, args json.RawMessage) *tool.Error {
	r := s.runner
	if !r.policies.exist() {
		return nil
	}
	args = r.config.Redact.JSON(args)
	v, _ := r.policies.evaluate(ctx, step.Call{ID: s.call.ID, Name: s.call.Name, Args: args}, r.config.Digest(s.call.Name, args))
	switch v.Answer {
	case Allow:
		return nil
	case Deny:
		return deniedByPolicy(v)
	case Ask:
	}
	return &tool.Error{Message: ResultUnapproved, Recommendations: []string{AdviceUnapproved}}
}

// Allows implements [tool.Session].
func (s *toolSession) Allows(ctx context.Context, name string, args json.RawMessage) bool {
	return s.runner.policies.allows(ctx, name, args)
}

// HasPolicy implements [tool.Session].
func (s *toolSession) HasPolicy() bool { return s.runner.policies.exist() }

// Ask implements [tool.Session].
func (s *toolSession) Ask(ctx context.Context, q tool.Question) (tool.Answer, error) {
	if err := s.enter(ctx); err != nil {
		return tool.Answer{}, err
	}
	defer s.leave()
	id, since := s.questionID(s.call.ID)
	if said, answered := s.runner.decision(id); answered {
		s.show(ctx, said.Images)
		return tool.Answer{Text: said.Value, By: said.By}, nil
	}
	asked := &approval.Request{
		Session: s.runner.records, Reason: approval.ForAnswer, Since: since, Check: q.Fits,
		Pending: task.Pending{
			ID: id, Kind: task.PendingQuestion, Agent: task.Cut(s.runner.options.Scope.Agent, task.MaxAsker),
			Question: task.Cut(redact.Printable(s.runner.config.Redact.String(q.Text)), task.MaxMessage),
			Schema:   s.schemaText(q.Schema),
		},
	}
	d, answered, err := s.runner.config.Requests.Await(ctx, asked)
	if err != nil {
		return tool.Answer{}, err
	}
	s.show(ctx, d.Images)
	return tool.Answer{Text: d.Value, By: d.By, Expired: !answered}, nil
}

// show adds files of the workspace to the result of the call.
func (s *toolSession) show(ctx context.Context, paths []string) {
	for _, path := range paths {
		part := s.runner.ShowPath(ctx, path)
		s.mu.Lock()
		s.shown = append(s.shown, part)
		s.mu.Unlock()
	}
}

// shownFiles returns the files that are shown with the result, and a line for each file that is not. A call that was
// not executed has none.
func (s *toolSession) shownFiles() (files []step.Part, lines []string) {
	if s == nil {
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.shown {
		if p.File != nil {
			files = append(files, p)
		} else {
			lines = append(lines, p.Text)
		}
	}
	return files, lines
}

// schemaText returns the schema of the answer for users: complete, or empty.
func (s *toolSession) schemaText(schema json.RawMessage) string {
	if len(schema) == 0 {
		return ""
	}
	form := approval.DisplayArgs(s.runner.config.Redact.JSON(schema))
	if len(form) > task.MaxSchema {
		return ""
	}
	return form
}

// questionID returns the id of the question of a call, and since when it is open. The call itself may have been
// approved before.
func (s *toolSession) questionID(call string) (id string, since time.Time) {
	s.runner.config.State.ViewSession(s.runner.options.Name, func(now *state.Session) {
		id, since = approval.FreeID(call, "", now.Requests[call], nil), now.Since[call] // what it is answered is its own
	})
	return id, since
}

// Results of calls that were not made, or did not complete, for the model. The texts are part of sessions: changing a
// word makes resumed sessions differ from what was recorded.
const (
	ResultCut         = "Not executed: your answer was cut at the limit of its length, so these arguments may be incomplete. Call again with shorter arguments, or do it in several calls."
	ResultRefused     = "Not executed: the model declined to go on."
	ResultEnded       = "Not executed: an earlier call has already ended the work."
	ResultStopped     = "Not executed: the Run was asked to stop."
	ResultLimit       = "Not executed: a limit of the Run is reached."
	ResultLost        = "Interrupted: the runner was lost while this ran. It may have partly happened; look before you do it again."
	ResultUnread      = "Not accepted: %s failed in this turn, and you have not read why. Read the results of this turn first. Then go on with the work, or end it again and say what failed."
	ResultShutdown    = "Interrupted by shutdown. It may have partly happened; look before you do it again."
	ResultTooMany     = "Not executed: the Run may make no more tool calls (limits.toolCalls)."
	ResultTwice       = "This call has already opened its session."
	ResultChild       = "The agent %s ended without a result (%s). %s"
	ResultRejected    = "The agent %s rejected the work: %s"
	ResultPartial     = "The last that it said: %s"
	ResultNoOperator  = "The agent %s works in a Run of its own, and that needs a cluster: there is no operator here that could make one."
	ResultInputLarge  = "Not executed: the arguments have %d bytes, and the agent %s, in a Run of its own, can be given %d."
	ResultRefusedRun  = "There is no Run of the agent %s: %s"
	ResultAbandoned   = "The Run was asked to stop before the agent %s had ended; what it did is not known here."
	AdviceAlone       = "Do this part of the work yourself, or say in your result what stands in the way."
	AdviceShorter     = "Say it in fewer words, or split the work into several calls."
	ResultAmbiguous   = "Not executed: %v."
	ResultForbidden   = "Denied by the policy"
	ResultForbiddenBy = "Denied by policy rule %s"
	ResultDenied      = "Denied by %s"
	ResultUndecided   = "Denied: no user decided in time."
	ResultNoApprovers = "Denied: it needs the approval of a user, and there is no way to ask one."
	AdviceDenied      = "Do not try to get the same in another way. Go on without it, or say in your result what stands in the way."
	ResultUnapproved  = "it needs the approval of a person"
	AdviceUnapproved  = "Call the tool with that target directly: then an approval is requested."
	ResultEmpty       = "(no output)"
	ResultFileRefused = "[%s is not shown: %v]"
	ResultMoreFiles   = "[%d more files are not shown: at most %d are at once]"
	ResultNoMessage   = "the tool failed without a message"
	ResultTooLarge    = "\n… (cut: %d bytes in all; ask for less)"
	ResultOutputLarge = "The output has %d bytes; at most %d are kept."
)

// ResultTimeout is the result of a call that took too long.
func ResultTimeout(after time.Duration) string {
	return fmt.Sprintf("Timed out after %s and was cancelled. It may have partly happened.", after)
}

func resultUnknown(name string, known []step.Tool) string {
	names := make([]string, len(known))
	for i, t := range known {
		names[i] = t.Name
	}
	return fmt.Sprintf("Unknown tool name: '%s'. Available tools: %s", name, strings.Join(names, ", "))
}

// summarize returns a call and its result as one line.
func summarize(t *toolCall, result step.Step, res tool.Result) string {
	switch {
	case result.IsError:
		return FirstLine(result.Text())
	case res.Summary != "":
		return FirstLine(res.Summary)
	}
	return task.Cut(string(t.shownArgs()), task.MaxSummary)
}

// shownArgs returns the arguments that users are shown: the ones with which the call was, or would have been, executed.
func (t *toolCall) shownArgs() json.RawMessage {
	switch {
	case t.made != nil:
		return t.made
	case t.args != nil:
		return t.args
	}
	return t.call.Args
}

// FirstLine returns the first line of a text, bounded.
func FirstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return task.Cut(line, task.MaxSummary)
}
