// Package python is the tool that runs Python in the sandbox. Its interpreters keep
// the variables of earlier calls.
//
// An interpreter runs driver.py, which reads requests from stdin and writes answers
// to file descriptor 3, separate from what code prints. Code that times
// out is interrupted first, which keeps its variables, and killed if it does not
// stop. After an interpreter has ended, the next call starts a new one and its result
// says so.
package python

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/output"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// Name is the name of the tool.
const Name = "Python"

// Bounds of arguments.
const (
	maxCode   = 256 << 10
	maxScript = 64
	maxArgs   = 64
	maxArg    = 4 << 10
)

// mainSession is the default session.
const mainSession = "main"

//go:embed python.md
var page string

// Options configure the interpreters of a Run.
type Options = output.Options

// A Use configures the tool for one agent.
type Use = output.Use

// Interpreters are the interpreters of all agents of a Run. Each agent has its own
// sessions.
type Interpreters struct {
	sandbox sandbox.Sandbox
	opts    Options
	storage output.Storage
	ctx     context.Context //nolint:containedctx // interpreters live as long as this, not as long as the calls that start them
	end     context.CancelFunc

	mu       sync.Mutex
	sessions map[key]*session
	lost     []key
}

// New returns the interpreters of a Run. They are started when they are needed.
func New(sb sandbox.Sandbox, o Options) (*Interpreters, error) {
	o, storage, err := o.Complete()
	if err != nil {
		return nil, err
	}
	s := &Interpreters{sandbox: sb, opts: o, storage: storage, sessions: map[key]*session{}}
	if err := s.load(); err != nil {
		return nil, err
	}
	s.ctx, s.end = context.WithCancel(context.Background())
	return s, nil
}

type runIn struct {
	Code    string   `json:"code,omitempty" jsonschema:"the code to run"`
	Script  string   `json:"script,omitempty" jsonschema:"the name of a saved script to run instead of code"`
	Args    []string `json:"args,omitempty" jsonschema:"arguments for it, as sys.argv[1:]"`
	SaveAs  string   `json:"save_as,omitempty" jsonschema:"save the code as a script of this name, and run it"`
	Session string   `json:"session,omitempty" jsonschema:"which interpreter; default main"`
	Restart bool     `json:"restart,omitempty" jsonschema:"end the interpreter first, and lose its variables; default false"`
	Timeout float64  `json:"timeout_seconds,omitempty" jsonschema:"interrupt the code after so many seconds; default 120, or what this agent was given"`
}

// Tool returns the tool for an agent. It enforces its timeout itself, so that the
// result has the output so far. Calls are sequential, because their effects are
// unknown.
func (i *Interpreters) Tool(u Use) tool.Tool {
	u = u.Complete(Name, i.opts)
	spec := tool.Spec{
		Name: u.Name, Description: strings.TrimSpace(page),
		Effect: tool.Once, Concurrency: tool.Sequential, Timeout: tool.Unbounded,
	}
	return tool.Typed(spec, func(ctx context.Context, call tool.Call, in runIn) (tool.Result, error) {
		c := execution{Interpreters: i, call: call, timeout: u.Timeout}
		if wrong := c.check(in); wrong != nil {
			return *wrong, nil
		}
		return c.run(ctx)
	})
}

// names matches valid names of sessions and scripts.
var names = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)

// check validates the arguments and stores them.
func (e *execution) check(in runIn) *tool.Result {
	fail := func(format string, args ...any) *tool.Result {
		r := tool.Fail(fmt.Sprintf(format, args...))
		return &r
	}
	e.key = key{Scope: e.call.Scope.Parent, Name: cmp.Or(in.Session, mainSession)}
	e.restart = in.Restart
	e.request = request{Code: in.Code, Script: trimExtension(in.Script), Save: trimExtension(in.SaveAs), Args: in.Args}
	blank := strings.TrimSpace(in.Code) == ""
	switch {
	case blank && e.request.Script == "" && !in.Restart:
		return fail("There is nothing to run: give code, or the name of a script.")
	case !blank && e.request.Script != "":
		return fail("Give code or script, not both.")
	case blank && e.request.Save != "":
		return fail("There is no code to save.")
	case len(in.Code) > maxCode:
		return fail("The code has %d bytes; at most %d can be run. Put data into a file and read it from there.", len(in.Code), maxCode)
	case in.Timeout < 0 || in.Timeout > e.opts.MaxTimeout.Seconds():
		return fail("timeout_seconds must be more than 0 and at most %g.", e.opts.MaxTimeout.Seconds())
	case tooMany(in.Args):
		return fail("At most %d args of %d bytes each are passed on.", maxArgs, maxArg)
	}
	for _, name := range []string{e.key.Name, e.request.Script, e.request.Save} {
		if name != "" && (!names.MatchString(name) || len(name) > maxScript) {
			return fail("The name %.100q cannot be used: write at most %d letters, digits, _, . and -.", name, maxScript)
		}
	}
	if in.Timeout > 0 {
		e.timeout = time.Duration(in.Timeout * float64(time.Second))
	}
	return nil
}

// trimExtension returns the name of a script without .py.
func trimExtension(name string) string { return strings.TrimSuffix(strings.TrimSpace(name), ".py") }

func tooMany(args []string) bool {
	for _, arg := range args {
		if len(arg) > maxArg {
			return true
		}
	}
	return len(args) > maxArgs
}

// The outcomes of a request.
const (
	howReady       = "ready" // it has started
	howDone        = "done"
	howFailed      = "failed"      // with a traceback, which it printed
	howInterrupted = "interrupted" // so was this
	howMissing     = "missing"     // there is no such script
	howUnreadable  = "unreadable"  // there is, but it cannot be read
	howUnsaved     = "unsaved"     // the code could not be saved, and did not run
)

// hows are all outcomes.
var hows = []string{howReady, howDone, howFailed, howInterrupted, howMissing, howUnreadable, howUnsaved}

// A request is a message to an interpreter.
type request struct {
	ID        int64    `json:"id"`
	Interrupt bool     `json:"interrupt,omitempty"` // end the request of that ID
	Code      string   `json:"code,omitempty"`
	Script    string   `json:"script,omitempty"`
	Save      string   `json:"save,omitempty"`
	Args      []string `json:"args,omitempty"`
	Mark      string   `json:"mark,omitempty"` // what to print at the end
}

// An answer is a message of an interpreter.
type answer struct {
	ID   int64  `json:"id"`
	How  string `json:"how"`
	Note string `json:"note"`
}

// encode returns the encoding of a request.
func encode(r request) ([]byte, error) {
	data, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encoding a request: %w", err)
	}
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(data))), data...), nil //nolint:gosec // bounded by maxCode
}

// maxAnswer and maxNote bound answers in bytes. Code in the interpreter can forge
// answers, but only about itself.
const (
	maxAnswer = 64 << 10
	maxNote   = 2 << 10
)

// errProtocol means that an interpreter wrote an invalid answer.
var errProtocol = errors.New("the interpreter's control channel carries what is no answer; the code wrote to it")

// A decoder decodes answers from chunks.
type decoder struct{ data []byte }

// write adds a chunk and returns the answers that are complete.
func (d *decoder) write(p []byte) ([]answer, error) {
	d.data = append(d.data, p...)
	var all []answer
	for len(d.data) >= 4 {
		size := binary.BigEndian.Uint32(d.data)
		if size > maxAnswer {
			return nil, errProtocol
		}
		rest := d.data[4:]
		if uint32(len(rest)) < size { //nolint:gosec // a chunk is smaller than 4 GiB
			break
		}
		var a answer
		if json.Unmarshal(rest[:size], &a) != nil || !slices.Contains(hows, a.How) {
			return nil, errProtocol
		}
		a.Note = a.Note[:min(len(a.Note), maxNote)]
		all = append(all, a)
		d.data = rest[size:]
	}
	d.data = bytes.Clone(d.data) // releases what was decoded
	return all, nil
}

// A splitter finds the mark at the end of the output of a request.
type splitter struct {
	mark []byte // empty: none is searched
	held []byte // what may be its beginning
}

// write adds a chunk and returns the output before the mark and, if it was found,
// after it.
func (s *splitter) write(p []byte) (before, after []byte, found bool) {
	data := slices.Concat(s.held, p)
	s.held = nil
	if len(s.mark) == 0 {
		return data, nil, false
	}
	if i := bytes.Index(data, s.mark); i >= 0 {
		after = data[i+len(s.mark):]
		s.mark = nil
		return data[:i], after, true
	}
	n := min(len(data), len(s.mark)-1)
	for !bytes.HasPrefix(s.mark, data[len(data)-n:]) {
		n--
	}
	s.held = data[len(data)-n:]
	return data[:len(data)-n], nil, false
}
