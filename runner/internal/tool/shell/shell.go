// Package shell has the tool that runs commands in the sandbox, and two tools for
// commands in the background.
//
// Each command is a new shell. Only its final working directory is kept, for the next
// command. A command writes it to a separate pipe, so that its output
// cannot be mistaken for it. Working directories and running jobs are stored in a file
// of the runner, so that the next attempt continues in the same directory
// and reports which jobs were lost.
package shell

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"path"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/output"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/remember"
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

// A Use configures the tools for one agent. The names of all tools begin with the name of the first.
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

// maxCommand bounds a command line in bytes. The kernel's bound for an argument is
// 128 KiB.
const maxCommand = 100_000

// maxDir bounds the path of a directory.
const maxDir = 4096

// script runs the command line in its first argument, and writes the final working
// directory and a NUL to file descriptor 3. The command does not have that
// descriptor. If the command exits, the trap writes; if the command sets its own
// trap, the last line writes.
const script = `exec 2>&1 </dev/null; export TERM="${TERM:-dumb}" PAGER="${PAGER:-cat}" GIT_PAGER="${GIT_PAGER:-cat}" GIT_TERMINAL_PROMPT=0; ` +
	`trap '{ printf "%s\0" "$PWD" >&3; } 2>/dev/null' EXIT; ` +
	`eval "shift; $1" 3>&-; ` +
	`set -- $?; printf '%s\0' "$PWD" >&3; exit "$1"`

// program returns the command that runs a command line in a directory.
func program(shell, line, dir string) sandbox.Command {
	return sandbox.Command{
		Args: []string{shell, "-c", script, path.Base(shell), line},
		Dir:  dir,
		Env:  map[string]string{"PWD": dir},
	}
}

// A controlReader keeps the end of what a command wrote to file descriptor 3.
type controlReader struct{ data []byte }

func (c *controlReader) write(p []byte) {
	const most = 2 * (maxDir + 1) // the last one is complete
	c.data = append(c.data, p[max(0, len(p)-most):]...)
	c.data = c.data[max(0, len(c.data)-most):]
}

// dir returns the last directory that was written; empty if it is not valid.
func (c *controlReader) dir() string {
	rest, ok := bytes.CutSuffix(c.data, []byte{0})
	if !ok {
		return ""
	}
	dir := string(rest[bytes.LastIndexByte(rest, 0)+1:])
	if !path.IsAbs(dir) || len(dir) > maxDir || !utf8.ValidString(dir) {
		return ""
	}
	return path.Clean(dir)
}

// Name and bounds of the state.
const (
	stateFile = "shell.json"
	maxDirs   = 256 // working directories other than the workspace
	maxShown  = 200 // bytes of a command in a list
)

// A state is what is stored for the next attempt.
type state struct {
	// Dirs are the working directories of shells, unless they are the workspace.
	Dirs map[string]string `json:"dirs,omitempty"`
	// Jobs counts the background commands so far.
	Jobs int `json:"jobs,omitempty"`
	// Running describes the running commands, for the model.
	Running []string `json:"running,omitempty"`
}

// load reads the state of an earlier attempt. Its running commands are lost.
func (s *Shells) load() error {
	s.state.Dirs = map[string]string{}
	if err := remember.Load(s.opts.State, stateFile, &s.state); err != nil {
		return err
	}
	if s.state.Dirs == nil {
		s.state.Dirs = map[string]string{}
	}
	s.lost = s.state.Running
	s.state.Running = nil
	return nil
}

// save stores the state. Errors are ignored, because a full disk must not fail a
// command.
func (s *Shells) save() {
	s.state.Running = nil
	for _, j := range s.jobs {
		if j.running() {
			s.state.Running = append(s.state.Running, fmt.Sprintf("background command %s (%s)", j.id, j.line))
		}
	}
	_ = remember.Save(s.opts.State, stateFile, s.state) // as above
}

// dir returns the working directory of a shell.
func (s *Shells) dir(shellKey string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if dir, ok := s.state.Dirs[shellKey]; ok {
		return dir
	}
	return s.opts.Workspace
}

// setDir sets the working directory of a shell.
func (s *Shells) setDir(shellKey, dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.state.Dirs, shellKey)
	if dir != s.opts.Workspace {
		s.makeRoom()
		s.state.Dirs[shellKey] = dir
	}
	s.save()
}

// makeRoom removes directories until there is room for one more.
func (s *Shells) makeRoom() {
	for shellKey := range s.state.Dirs {
		if len(s.state.Dirs) < maxDirs {
			return
		}
		delete(s.state.Dirs, shellKey)
	}
}

// resetDirs sets the working directory of all shells to the workspace.
func (s *Shells) resetDirs() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.state.Dirs)
	s.save()
}

// lock waits until no other command runs in the shell.
func (s *Shells) lock(ctx context.Context, shellKey string) (unlock func(), err error) {
	s.mu.Lock()
	held, ok := s.locks[shellKey]
	if !ok {
		held = make(chan struct{}, 1)
		s.locks[shellKey] = held
	}
	s.mu.Unlock()
	select {
	case held <- struct{}{}:
		return func() { <-held }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// shorten returns the beginning of a command line, for lists.
func shorten(line string) string {
	line, _, more := strings.Cut(strings.TrimSpace(line), "\n")
	if len(line) > maxShown {
		line, more = strings.ToValidUTF8(line[:maxShown], ""), true
	}
	if more {
		line += " …"
	}
	return line
}
