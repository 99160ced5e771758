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
	Name       = "shell"
	NameOutput = "shell_output"
	NameKill   = "shell_kill"
)

//go:embed shell.md
var shellPage string

//go:embed output.md
var outputPage string

//go:embed kill.md
var killPage string

// Options are what the shells of a Run have in common.
type Options = output.Options

// A Use is how one agent has the tools: the names of the others begin with that
// of the first.
type Use = output.Use

// Shells are the shells of a Run: of all its agents, each with working
// directories of its own.
type Shells struct {
	sandbox sandbox.Sandbox
	opts    Options
	place   output.Place
	ctx     context.Context //nolint:containedctx // jobs live as long as the Shells, not as long as the calls that start them
	end     context.CancelFunc

	attending sync.WaitGroup // to the jobs

	mu    sync.Mutex
	state state
	lost  []string
	locks map[string]chan struct{} // of the shells; each holds a token while a command runs
	jobs  []*job
}

// New makes the shells of a Run, with what an earlier attempt left of them.
func New(sb sandbox.Sandbox, o Options) (*Shells, error) {
	o, place, err := o.Complete()
	if err != nil {
		return nil, err
	}
	s := &Shells{
		sandbox: sb, opts: o, place: place, locks: map[string]chan struct{}{},
	}
	if err := s.load(); err != nil {
		return nil, err
	}
	s.ctx, s.end = context.WithCancel(context.Background())
	return s, nil
}

// Close ends every command that still runs in the background, and waits a little
// for that.
func (s *Shells) Close() {
	s.end()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.attending.Wait()
	}()
	timer := time.NewTimer(killTimeout)
	defer timer.Stop()
	select {
	case <-ended:
	case <-timer.C:
	}
}

// Lost are the background commands that ran when the runner of an earlier
// attempt was lost, and were lost with it, in words for the model.
func (s *Shells) Lost() []string { return s.lost }

// Tools makes the tools for an agent.
func (s *Shells) Tools(u Use) []tool.Tool {
	u = u.Complete(Name, s.opts)
	return []tool.Tool{s.run(u), s.look(u), s.kill(u)}
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

// spec is the Spec of one of the tools. They bound themselves: a result that
// shows what was printed until then is worth more than none. A command stands
// alone in its turn, as nobody knows what it touches.
func spec(u Use, rest, page string, effect tool.Effect) tool.Spec {
	page = strings.NewReplacer(NameOutput, u.Name+"_output", NameKill, u.Name+"_kill").Replace(page)
	made := tool.Spec{
		Name: u.Name + rest, Description: strings.TrimSpace(page),
		Effect: effect, Concurrency: tool.Parallel, Timeout: tool.Unbounded,
	}
	if effect == tool.Once {
		made.Concurrency = tool.Sequential
	}
	return made
}
