package python

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"regexp"
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
func (s *Interpreters) Tool(u Use) tool.Tool {
	u = u.Complete(Name, s.opts)
	spec := tool.Spec{
		Name: u.Name, Description: strings.TrimSpace(page),
		Effect: tool.Once, Concurrency: tool.Sequential, Timeout: tool.Unbounded,
	}
	return tool.Typed(spec, func(ctx context.Context, call tool.Call, in runIn) (tool.Result, error) {
		c := execution{Interpreters: s, call: call, timeout: u.Timeout}
		if wrong := c.check(in); wrong != nil {
			return *wrong, nil
		}
		return c.run(ctx)
	})
}

// names matches valid names of sessions and scripts.
var names = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9_.-]*$`)

// check validates the arguments and stores them.
func (c *execution) check(in runIn) *tool.Result {
	fail := func(format string, args ...any) *tool.Result {
		r := tool.Fail(fmt.Sprintf(format, args...))
		return &r
	}
	c.key = key{Scope: c.call.Scope.Parent, Name: cmp.Or(in.Session, mainSession)}
	c.restart = in.Restart
	c.request = request{Code: in.Code, Script: trimExtension(in.Script), Save: trimExtension(in.SaveAs), Args: in.Args}
	blank := strings.TrimSpace(in.Code) == ""
	switch {
	case blank && c.request.Script == "" && !in.Restart:
		return fail("There is nothing to run: give code, or the name of a script.")
	case !blank && c.request.Script != "":
		return fail("Give code or script, not both.")
	case blank && c.request.Save != "":
		return fail("There is no code to save.")
	case len(in.Code) > maxCode:
		return fail("The code has %d bytes; at most %d can be run. Put data into a file and read it from there.", len(in.Code), maxCode)
	case in.Timeout < 0 || in.Timeout > c.opts.MaxTimeout.Seconds():
		return fail("timeout_seconds must be more than 0 and at most %g.", c.opts.MaxTimeout.Seconds())
	case tooMany(in.Args):
		return fail("At most %d args of %d bytes each are passed on.", maxArgs, maxArg)
	}
	for _, name := range []string{c.key.Name, c.request.Script, c.request.Save} {
		if name != "" && (!names.MatchString(name) || len(name) > maxScript) {
			return fail("The name %.100q cannot be used: write at most %d letters, digits, _, . and -.", name, maxScript)
		}
	}
	if in.Timeout > 0 {
		c.timeout = time.Duration(in.Timeout * float64(time.Second))
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
