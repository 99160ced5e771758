package policy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"github.com/deckhand-dev/deckhand/internal/shared/digest"
	"github.com/deckhand-dev/deckhand/internal/shared/policy/shell"
)

// A Call is one call of a tool that is about to run.
type Call struct {
	Tool string
	Args json.RawMessage
	// Shell is the command line if the tool is a shell, otherwise empty. Dialect is the shell that reads it, by default
	// [shell.Bash].
	Shell   string
	Dialect shell.Dialect
	Agent   Agent
	Run     Run
}

// An Agent is the agent that makes a call.
type Agent struct {
	Name string
	// Depth is 0 for the agent of the Run, 1 for an agent that it called, and so on.
	Depth int
}

// A Run is the Run of the call.
type Run struct {
	Namespace, Name string
	// User is the user for whom the Run works, as its creator sets it.
	User   string
	Labels map[string]string
}

// An input gives conditions the values that they read, each made only when it
// is read.
type input struct {
	call    Call
	args    func() any
	line    *lazyLine
	reading reading
}

// read returns the same input in another reading.
func (i *input) read(as reading) *input {
	other := *i
	other.reading = as
	return &other
}

func newInput(call Call) *input {
	return &input{
		call: call,
		args: sync.OnceValue(func() any { return decode(call.Args) }),
		line: &lazyLine{text: call.Shell, dialect: call.Dialect},
	}
}

// ResolveName implements [interpreter.Activation].
func (i *input) ResolveName(name string) (any, bool) {
	switch name {
	case "tool":
		return i.call.Tool, true
	case "args":
		return i.args(), true
	case "agent.name":
		return i.call.Agent.Name, true
	case "agent.depth":
		return i.call.Agent.Depth, true
	case "run.namespace":
		return i.call.Run.Namespace, true
	case "run.name":
		return i.call.Run.Name, true
	case "run.user":
		return i.call.Run.User, true
	case "run.labels":
		return i.call.Run.Labels, true
	case "shell":
		return commandLine{i.line}, true
	case readingName:
		return i.reading, true
	}
	return nil, false
}

// Parent implements [interpreter.Activation].
func (*input) Parent() interpreter.Activation { return nil }

// decode converts arguments to CEL values. An ambiguous value becomes an error value.
func decode(args json.RawMessage) any {
	canonical, err := digest.Canonical(args)
	if err != nil {
		return types.WrapErr(err)
	}
	var members map[string]any
	dec := json.NewDecoder(bytes.NewReader(canonical))
	dec.UseNumber()
	if err := dec.Decode(&members); err != nil || members == nil {
		return types.NewErr("the arguments are no object")
	}
	return numbers(members)
}

// maxItems bounds the lists and objects that conditions can access: for longer ones, counting the cost takes CEL longer
// than the access.
const maxItems = 1000

// numbers converts JSON numbers; whole ones become integers. Values that no condition can access become error values.
func numbers(v any) any {
	switch v := v.(type) {
	case map[string]any:
		if len(v) > maxItems {
			return types.NewErr("the arguments have an object with more than %d members", maxItems)
		}
		for name, member := range v {
			v[name] = numbers(member)
		}
	case []any:
		if len(v) > maxItems {
			return types.NewErr("the arguments have a list with more than %d items", maxItems)
		}
		for i, item := range v {
			v[i] = numbers(item)
		}
	case json.Number:
		return number(v)
	}
	return v
}

func number(v json.Number) any {
	if n, err := v.Int64(); err == nil {
		return n
	}
	if n, err := strconv.ParseUint(v.String(), 10, 64); err == nil {
		return n
	}
	if n, err := v.Float64(); err == nil {
		return n
	}
	return types.NewErr("the arguments have a number that is too large: %s", shorten(v.String()))
}

// A lazyLine is a command line that is read when a rule asks for it.
type lazyLine struct {
	text    string
	dialect shell.Dialect
	parsed  *shell.Line
}

// shellType is the type of the variable shell.
var shellType = cel.OpaqueType("shell")

// A commandLine is the variable shell.
type commandLine struct{ *lazyLine }

func (l commandLine) read() *shell.Line {
	if l.parsed == nil {
		l.parsed = shell.Read(l.text, l.dialect)
	}
	return l.parsed
}

// ConvertToNative implements [ref.Val].
func (commandLine) ConvertToNative(t reflect.Type) (any, error) {
	return nil, fmt.Errorf("shell is no %s", t)
}

// ConvertToType implements [ref.Val].
func (commandLine) ConvertToType(t ref.Type) ref.Val {
	return types.NewErr("shell is no %s; use shell.runs or shell.opaque", t.TypeName())
}

// Equal implements [ref.Val].
func (l commandLine) Equal(other ref.Val) ref.Val {
	o, ok := other.(commandLine)
	return types.Bool(ok && o == l)
}

// Type implements [ref.Val].
func (commandLine) Type() ref.Type { return shellType }

// Value implements [ref.Val].
func (l commandLine) Value() any { return l.text }
