package tool

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/deckhand-dev/deckhand/runner/internal/tool/args"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/facts"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// A Tool is one thing that a model may do. It is data: a copy of it with another name, timeout or
// Call keeps everything else. [Typed] makes one of a function with typed arguments.
type Tool struct {
	Spec
	// Call executes a call. Its arguments are canonical and valid against Input. The
	// model reads an error as it reads the Error of a Result, without secrets; an error
	// made by Fatal ends the attempt, too.
	Call func(ctx context.Context, call Call) (Result, error)
	// Classify returns the effect of a call by its arguments, which are valid, for a tool whose
	// calls differ, such as a tool that both reads and writes. It must return the same for the
	// same arguments. Nil: each call has the Effect of the Spec.
	Classify func(args json.RawMessage) Effect
	// Canonicalize returns the canonical form of arguments. Nil: they are canonical as they are.
	Canonicalize CanonicalFunc
	// Closer is what the tool holds, for example connections. It is closed once, though several
	// tools hold it: when the session has ended, or, for the first session of an Agent, when
	// the attempt ends. A Closer that a factory returns for each session is closed when the
	// attempt ends. Nil: the tool holds nothing.
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

// CloseFunc makes a Closer of a function.
func CloseFunc(f func() error) io.Closer { return &closeFunc{f} }

// A closeFunc is comparable by its address, so that a shared one is closed once.
type closeFunc struct{ close func() error }

// Close implements [io.Closer].
func (c *closeFunc) Close() error { return c.close() }

// A Spec is what the loop and the model know of a tool.
type Spec struct {
	// Name is the name by which the model calls the tool: 1 to 64 letters, digits, _ or -.
	Name string
	// Description tells the model what the tool does and when to call it.
	Description string
	// Input is the JSON Schema of the arguments, of type object. Typed makes it.
	Input json.RawMessage
	// Effect decides what happens to a call that a crash interrupted.
	Effect Effect
	// Concurrency decides which calls of one turn may run beside it; empty: none.
	Concurrency Concurrency
	// Timeout bounds one call; 0 means the default of 120 s, Unbounded none.
	Timeout time.Duration
	// Internal is for the runner's own tools. A tool of another module leaves it as it is.
	Internal facts.Internal
}

// Unbounded is the Timeout of a tool that waits for others: agents, people.
const Unbounded time.Duration = -1

// Effect is what a tool does to the world, as far as a resume is concerned.
type Effect string

// The effect classes. Unless a tool says otherwise it is Once.
const (
	ReadOnly   Effect = "ReadOnly"   // an interrupted call runs again
	Idempotent Effect = "Idempotent" // an interrupted call runs again
	Resumable  Effect = "Resumable"  // an interrupted call is re-entered where it stood
	Once       Effect = "Once"       // an interrupted call is reported to the model, never repeated
)

// Concurrency says what may run beside a call in the same turn.
type Concurrency string

// The concurrency classes. Unless a tool says otherwise it is Sequential.
const (
	Parallel   Concurrency = "Parallel"   // any call
	PerPath    Concurrency = "PerPath"    // any call that does not name the same path
	Sequential Concurrency = "Sequential" // no call
)

// A Call is one call, ready to be executed.
type Call struct {
	ID   string
	Name string
	Args json.RawMessage
	// Scope says where in the tree of agents the call is made.
	Scope step.Scope
	// Emit shows progress to users who follow the Run. It is never nil and never blocks.
	Emit func(text string)
	// Session does for the call what only its session can. It is never nil when
	// the loop calls.
	Session Session
}

// A Session is what a call may ask of the session that it belongs to.
type Session interface {
	// Delegate has an agent do a piece of work in a session of its own, named after the
	// call, or in a child Run; called again for the same call it resumes. The Result says
	// what the other agent could not do.
	Delegate(ctx context.Context, d Delegation) (Result, error)
	// Ask puts a question to a person and waits for the answer.
	Ask(ctx context.Context, q Question) (Answer, error)
	// Authorize has the policy judge the call with other arguments, in canonical form, that
	// were not known when it was allowed, for example the target of a redirect. It returns
	// nil if the policy allows them, and otherwise what the model reads. It does not ask a
	// person: arguments that need an approval are refused.
	Authorize(ctx context.Context, args json.RawMessage) *Error
	// Allows reports whether the policies of the session, its agent's and those of
	// all agents above, let it make a call without a person: for tools whose result
	// shows what another tool may not. The arguments are canonical. What a person
	// approved for the rest of the Run is allowed.
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
	// Run says that the agent works in a child Run, which is given Input and nothing
	// else.
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
	// Schema, a JSON Schema, is what people are shown of how to answer; empty: in
	// any words.
	Schema json.RawMessage
	// Fits says what is wrong with an answer; the user who gave it may then give another.
	// Nil accepts any answer.
	Fits func(answer string) error
}

// An Answer is the answer of a user. Expired says that none was given in time.
type Answer struct {
	Text    string
	By      string
	Expired bool
}

// A Result is what the model reads.
type Result struct {
	Text string
	// Error, when not nil, says that the call failed and what to do instead.
	Error *Error
	// Failed says that the tool did what it was asked, and that this failed: a command with
	// an exit code other than 0. The model reads Text, and cannot finish before it has.
	Failed bool
	// Pending says that the work that the call asks about still runs, so that the
	// same call may be made again later.
	Pending bool
	// Output is the value that a call of an ending tool commits.
	Output json.RawMessage
	// Summary is one line for status and logs; empty: made from the arguments.
	Summary string
	// Files are images and documents that the model is shown behind the text: PNG, JPEG, GIF,
	// WebP and PDF, of at most 3.75 MiB each, 20 at most. A line stands for each file
	// that is not shown, with the reason.
	Files []File
}

// A File is an image or a document.
type File struct {
	// Name is where it comes from, for models and people: its path.
	Name string
	Data []byte
}

// An Error is a failure of a call, told to the model.
type Error struct {
	Message string
	// Recommendations say what to try instead, most promising first.
	Recommendations []string
}

// Fatal makes an error that ends the attempt, for a failure after which no call of any tool
// could succeed. The text of err is the result of the call, which is not made again: if
// there is another attempt, its model reads it. With a task.EndError in err the Run ends with
// its reason, and otherwise with RunnerFailed unless it may be retried. Fatal(nil) is nil.
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

// Fail is a Result that reports a failure.
func Fail(message string, recommendations ...string) Result {
	return Result{Error: &Error{Message: message, Recommendations: recommendations}}
}

// Render is the text that the model reads: the only renderer of tool errors.
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

// Typed makes a tool of a function. The arguments that it accepts are the
// fields of In, a struct: their names come from the json tag, where omitempty
// makes a field optional; what they mean from the jsonschema tag; the values
// that a string may have from the enum tag, separated by commas. A Spec that
// has an Input already keeps it.
//
// The function is called only with arguments that fit. The model reads an error that it
// returns. Typed panics when In has
// no schema, as regexp.MustCompile does: tools are made when a program starts.
func Typed[In any](spec Spec, f func(ctx context.Context, call Call, in In) (Result, error)) Tool {
	if spec.Input == nil {
		spec.Input = inputOf[In]()
	}
	checker := args.NewChecker(spec.Input, spec.Internal.Facts())
	return Tool{Spec: spec, Call: func(ctx context.Context, call Call) (Result, error) {
		if wrong := checker.Check(spec.Name, call.Args); wrong != nil {
			return Fail(wrong.Message, wrong.Recommendations...), nil
		}
		var in In
		dec := json.NewDecoder(bytes.NewReader(call.Args))
		if err := dec.Decode(&in); err != nil { // an Input of the tool's own may allow more than In holds
			return Fail(args.Invalid(spec.Name, err.Error()).Message), nil
		}
		return f(ctx, call, in)
	}}
}

// inputOf is the schema of a struct, as the model is shown it.
func inputOf[In any]() json.RawMessage {
	s, err := jsonschema.For[In](nil)
	if err != nil {
		panic(fmt.Sprintf("tool: the schema of %T: %v", *new(In), err))
	}
	addEnums(s, reflect.TypeFor[In]())
	raw, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("tool: writing the schema of %T: %v", *new(In), err))
	}
	return raw
}

// addEnums adds what the enum tags of a struct say.
func addEnums(s *jsonschema.Schema, t reflect.Type) {
	for field := range t.Fields() {
		values, ok := field.Tag.Lookup("enum")
		if !ok {
			continue
		}
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		for value := range strings.SplitSeq(values, ",") {
			s.Properties[name].Enum = append(s.Properties[name].Enum, value)
		}
	}
}

// A CanonicalFunc returns the one form of args that names what a call will do, for a tool
// whose arguments can name one thing in several ways: a file by a relative path or through a
// symbolic link, a host in upper or lower case. The loop replaces the arguments of each call
// by their canonical form before anything judges them: hooks, policy, approvals and digests
// see what will happen, however the model wrote it. The tool is called with that form.
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

// SetArgs returns args with the members of set replaced or added. It returns
// args itself, to the byte, if they have these values already; otherwise the
// members are sorted by name, and of two members of one name the last counts, as
// it does for the tool.
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

// quoted is a string as JSON, with no more escapes than it needs.
func quoted(s string) json.RawMessage {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string always is JSON
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}
