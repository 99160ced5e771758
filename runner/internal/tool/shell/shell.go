package shell

import (
	"context"
	_ "embed"
	"strings"
	"sync"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/output"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// The names of the tools.
const (
	Name       = "Shell"
	NameOutput = Name + follow
	NameKill   = Name + kill

	follow = "Output"
	kill   = "Kill"
)

//go:embed shell.md
var shellPage string

//go:embed output.md
var outputPage string

//go:embed kill.md
var killPage string

// Options configure the shells of a Run.
type Options = output.Options

// A Use configures the tools for one agent. The names of all tools begin with that of
// the first.
type Use = output.Use

// Shells are the shells of all agents of a Run. Each agent has its own working
// directories.
type Shells struct {
	sandbox sandbox.Sandbox
	opts    Options
	storage output.Storage
	ctx     context.Context //nolint:containedctx // jobs live as long as the Shells, not as long as the calls that start them
	end     context.CancelFunc

	attending sync.WaitGroup // to the jobs

	mu    sync.Mutex
	state state
	lost  []string
	locks map[string]chan struct{} // by shell; each holds a token while a command runs
	jobs  []*job
}

// New returns the shells of a Run with the state of an earlier attempt.
func New(sb sandbox.Sandbox, o Options) (*Shells, error) {
	o, storage, err := o.Complete()
	if err != nil {
		return nil, err
	}
	s := &Shells{
		sandbox: sb, opts: o, storage: storage, locks: map[string]chan struct{}{},
	}
	if err := s.load(); err != nil {
		return nil, err
	}
	s.ctx, s.end = context.WithCancel(context.Background())
	return s, nil
}

// Close ends all commands in the background and waits up to killTimeout.
func (s *Shells) Close() {
	s.end()
	exitResult := make(chan struct{})
	go func() {
		defer close(exitResult)
		s.attending.Wait()
	}()
	timer := time.NewTimer(killTimeout)
	defer timer.Stop()
	select {
	case <-exitResult:
	case <-timer.C:
	}
}

// Lost describes the background commands that were lost with an earlier attempt, for
// the model.
func (s *Shells) Lost() []string { return s.lost }

// Tools returns the tools for an agent.
func (s *Shells) Tools(u Use) []tool.Tool {
	u = u.Complete(Name, s.opts)
	return []tool.Tool{s.run(u), s.outputTool(u), s.killTool(u)}
}

type runIn struct {
	Command    string  `json:"command" jsonschema:"the command line"`
	Timeout    float64 `json:"timeout_seconds,omitempty" jsonschema:"kill it after so many seconds; default 120, or what this agent was given. A background command has no limit unless you set one"`
	Background bool    `json:"background,omitempty" jsonschema:"leave it running and answer at once with its id; default false"`
	Name       string  `json:"name,omitempty" jsonschema:"which shell; each name has a working directory of its own"`
}

func (s *Shells) run(u Use) tool.Tool {
	return tool.Typed(spec(u, "", shellPage, tool.Once), func(ctx context.Context, call tool.Call, in runIn) (tool.Result, error) {
		c := command{Shells: s, use: u, call: call, line: in.Command}
		if wrong := c.check(in); wrong != nil {
			return *wrong, nil
		}
		if in.Background {
			return c.background(ctx)
		}
		return c.foreground(ctx)
	})
}

// nameOf returns the name of a tool, in the style of the name of the shell.
func nameOf(u Use, rest string) string {
	if rest != "" && u.Name == strings.ToLower(u.Name) {
		return u.Name + "_" + strings.ToLower(rest)
	}
	return u.Name + rest
}

// spec returns the Spec of a tool. The tools enforce their timeouts themselves, so
// that the result has the output so far. Commands are sequential, because their
// effects are unknown.
func spec(u Use, rest, page string, effect tool.Effect) tool.Spec {
	page = strings.NewReplacer(NameOutput, nameOf(u, follow), NameKill, nameOf(u, kill)).Replace(page)
	made := tool.Spec{
		Name: nameOf(u, rest), Description: strings.TrimSpace(page),
		Effect: effect, Concurrency: tool.Parallel, Timeout: tool.Unbounded,
	}
	if effect == tool.Once {
		made.Concurrency = tool.Sequential
	}
	return made
}
