// Package tool is the interface to the tools of a model.
//
// A tool is a function and the page that describes it: files/read.go and files/read.md. The model reads the results of
// a tool, errors included. It also reads an error that Call returns; an error of Fatal ends the attempt, too.
package tool

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/tool/facts"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// A Tool is a tool that a model may call. It is a plain value: a copy with another Name, Timeout or Call is another
// tool. [Typed] makes a Tool from a function with typed arguments.
type Tool struct {
	Spec
	// Call executes a call, whose arguments are canonical and valid against Input. It may be called from several
	// goroutines at once, as Concurrency allows. An error is a failed call: the model reads its text, without secrets.
	// An error of [Fatal] also ends the attempt.
	Call func(ctx context.Context, call Call) (Result, error)
	// Classify returns the effect of a call with these valid arguments, for a tool that both reads and writes, for
	// example. It must always return the same effect for the same arguments. Nil: each call has the Effect of the Spec.
	Classify func(args json.RawMessage) Effect
	// Canonicalize returns the canonical form of arguments. Nil: they are canonical as they are.
	Canonicalize CanonicalFunc
	// Closer releases the resources of the tool, for example connections. It is closed once, even if several tools have
	// the same: at the end of the session, or, for the first session of an Agent, at the end of the attempt. A Closer
	// that a factory returns again for each session is closed at the end of the attempt. Nil: the tool has no
	// resources.
	Closer io.Closer
}

// EffectOf returns the effect of a call with these arguments.
func (t Tool) EffectOf(args json.RawMessage) Effect {
	effect := t.Effect
	if t.Classify != nil {
		effect = t.Classify(args)
	}
	return cmp.Or(effect, Once)
}

// CanonicalArgs returns the canonical form of the arguments of a call, or why it is refused.
func (t Tool) CanonicalArgs(ctx context.Context, args json.RawMessage) (json.RawMessage, *Error) {
	if t.Canonicalize == nil {
		return args, nil
	}
	return t.Canonicalize(ctx, args)
}

// CloseFunc returns a Closer that calls f. Two tools with the same returned value share it, and it is closed once.
func CloseFunc(f func() error) io.Closer { return &closeFunc{f} }

// A closeFunc is comparable by its address, so that a shared one is closed once.
type closeFunc struct{ close func() error }

// Close implements [io.Closer].
func (c *closeFunc) Close() error { return c.close() }

// A Spec describes a tool to the model and to the agent loop.
type Spec struct {
	// Name is the name by which the model calls the tool: 1 to 64 letters, digits, _ or -.
	Name string
	// Description tells the model what the tool does and when to call it.
	Description string
	// Input is the JSON Schema of the arguments, of type object. Typed makes it.
	Input json.RawMessage
	// Effect determines whether an interrupted call is repeated; empty: Once.
	Effect Effect
	// Concurrency determines which calls of the same turn may run in parallel with a call; empty: Sequential.
	Concurrency Concurrency
	// Timeout is the maximum time of one call. 0 is the default of 120 s, and Unbounded no limit.
	Timeout time.Duration
	// Internal is for the runner's own tools. A tool of another module leaves it as it is.
	Internal facts.Internal
}

// Unbounded is the Timeout of a tool that waits for other agents or for users.
const Unbounded time.Duration = -1

// Effect is what a call may change. It determines what a resumed session does with a call that a crash interrupted.
type Effect string

// The effect classes. The default is Once.
const (
	ReadOnly   Effect = "ReadOnly"   // an interrupted call runs again
	Idempotent Effect = "Idempotent" // an interrupted call runs again
	Resumable  Effect = "Resumable"  // an interrupted call is called again, and continues
	Once       Effect = "Once"       // an interrupted call is reported to the model, never repeated
)

// Concurrency is which calls may run in parallel with a call in the same turn.
type Concurrency string

// The concurrency classes. The default is Sequential.
const (
	Parallel   Concurrency = "Parallel"   // any call
	PerPath    Concurrency = "PerPath"    // any call that does not name the same path
	Sequential Concurrency = "Sequential" // no call
)

// A Call is the input of Tool.Call.
type Call struct {
	ID   string
	Name string
	Args json.RawMessage
	// Scope is the position of the call in the tree of agents.
	Scope step.Scope
	// Emit shows progress to users who follow the Run. It is never nil and never blocks.
	Emit func(text string)
	// Session gives access to the session of the call. The agent loop always sets it.
	Session Session
}

// A Session lets a call use its session: delegate work, ask users, and ask the policy.
type Session interface {
	// Delegate gives work to another agent, in a session named after the call or in a child Run, and waits for its
	// result. If it is called again for the same call, it resumes. Failures of the other agent are in the Result.
	Delegate(ctx context.Context, d Delegation) (Result, error)
	// Ask asks users a question and waits for the answer.
	Ask(ctx context.Context, q Question) (Answer, error)
	// Authorize has the policy decide about the call with other arguments, in canonical form, that were not known when
	// it was allowed, for example the target of a redirect. It returns nil if the policy allows them, and otherwise the
	// result for the model. It does not ask users: arguments that need an approval are refused.
	Authorize(ctx context.Context, args json.RawMessage) *Error
	// Allows reports whether the policies of the session and of the sessions above it let a call be made without asking
	// a user. It is for tools whose result shows what another tool may not show. The arguments must be canonical. Calls
	// that a user approved for the rest of the Run are allowed.
	Allows(ctx context.Context, name string, args json.RawMessage) bool
	// HasPolicy reports whether the agent of the session, or an agent above it, has
	// a policy. Without one, Allows returns true for every call.
	HasPolicy() bool
}

// A Delegation is a piece of work for an agent.
type Delegation struct {
	// Call is the id of the call that asks for it.
	Call string
	// Agent is the name of the agent; empty: the same agent, with a fresh session.
	Agent string
	// Run reports that the agent works in a child Run, whose only input is Input.
	Run bool
	// Prompt is its first message, Input the values of its instructions.
	Prompt string
	Input  json.RawMessage
}

// A Question is a question to a user.
type Question struct {
	// Call is the id of the call that asks.
	Call string
	Text string
	// Schema, a JSON Schema, describes the answer for users; empty: any text.
	Schema json.RawMessage
	// Fits returns what is wrong with an answer; the user may then give another. Nil accepts any answer.
	Fits func(answer string) error
}

// An Answer is the answer of a user. Expired reports that there was none in time.
type Answer struct {
	Text    string
	By      string
	Expired bool
}

// A Result is the result of a call. The model reads it as Render returns it, with Files after the text.
type Result struct {
	Text string
	// Error, if not nil, describes why the call failed and what to do instead.
	Error *Error
	// Failed reports that the tool was executed and that its work failed: a command with an exit code other than 0. The
	// model must read Text before it can finish.
	Failed bool
	// Pending reports that the work of the call still runs, so that the same call may be repeated later.
	Pending bool
	// Output is the value that a call of an ending tool commits.
	Output json.RawMessage
	// Summary is one line for status and logs; empty: made from the arguments.
	Summary string
	// Files are images and documents that the model sees after the text: PNG, JPEG, GIF, WebP and PDF, at most 20 of at
	// most 3.75 MiB each. A line of text with the reason replaces each file that cannot be shown.
	Files []File
}

// A File is an image or a document.
type File struct {
	// Name is the path of the file, for models and users.
	Name string
	Data []byte
}

// An Error describes a failed call to the model.
type Error struct {
	Message string
	// Recommendations describe what to try instead, most promising first.
	Recommendations []string
}

// Fatal returns an error that ends the attempt, for a failure after which no other call could succeed. The text of err
// is recorded as the result of the call, so another attempt does not repeat the call, and its model reads the text. The
// attempt ends with the reason of a task.EndError in err, or without one with RunnerFailed, after which the Run is
// retried if spec.maxRetries allows it. Fatal(nil) is nil.
func Fatal(err error) error {
	if err == nil {
		return nil
	}
	return &FatalError{Err: err}
}

// A FatalError is an error of a tool that ends the attempt.
type FatalError struct{ Err error }

func (e *FatalError) Error() string { return e.Err.Error() }

// Unwrap returns the error that was given to Fatal.
func (e *FatalError) Unwrap() error { return e.Err }

// Fail returns a Result that reports a failure.
func Fail(message string, recommendations ...string) Result {
	return Result{Error: &Error{Message: message, Recommendations: recommendations}}
}

// Render returns the text of a result for the model. For a failed call it is the message of the Error and its
// recommendations.
func (r Result) Render() string {
	if r.Error == nil {
		return r.Text
	}
	var text strings.Builder
	text.WriteString("Error: " + r.Error.Message)
	for _, rec := range r.Error.Recommendations {
		text.WriteString("\n- " + rec)
	}
	return text.String()
}

// A CanonicalFunc returns the canonical form of args, for a tool whose arguments can name the same thing in several
// ways: a file by a relative path or through a symbolic link, a host in upper or lower case. The agent loop replaces
// the arguments of each call by their canonical form. Hooks, policy, approvals and digests see that form, and the tool
// is called with it.
//
// The arguments fit the schema of the tool, and so must the result. An Error refuses the
// call; the model reads it.
//
// The function must be idempotent: for its own result it returns the same bytes, unless what
// the arguments name has changed. It must not change args, and it must have no effects. It
// may read: a directory, a link. A call that is resumed uses the form recorded in the
// journal, so the tool must refuse, when it is called, arguments that are no longer
// canonical.
type CanonicalFunc func(ctx context.Context, args json.RawMessage) (json.RawMessage, *Error)

// SetArgs returns args with the members of set replaced or added. If args have these values already, it returns args
// itself. Otherwise the members of the result are sorted by name, and of two members with one name it has the last,
// which a tool reads, too.
func SetArgs(args json.RawMessage, set map[string]string) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(args, &members) != nil {
		return args // no object: the schema refuses it
	}
	changed := false
	for _, name := range slices.Sorted(maps.Keys(set)) {
		var old string
		if has := members[name]; bytes.HasPrefix(has, []byte(`"`)) && json.Unmarshal(has, &old) == nil && old == set[name] {
			continue
		}
		if members == nil {
			members = map[string]json.RawMessage{}
		}
		members[name], changed = quoted(set[name]), true
	}
	if !changed {
		return args
	}
	var out bytes.Buffer
	out.WriteByte('{')
	for i, name := range slices.Sorted(maps.Keys(members)) {
		if i > 0 {
			out.WriteByte(',')
		}
		out.Write(quoted(name))
		out.WriteByte(':')
		out.Write(members[name])
	}
	out.WriteByte('}')
	return out.Bytes()
}

// quoted returns a string as JSON, without unnecessary escapes.
func quoted(s string) json.RawMessage {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always is JSON
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
