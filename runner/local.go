package runner

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/deckhand-dev/deckhand/internal/shared/clock"
	"github.com/deckhand-dev/deckhand/internal/shared/networkcheck"
	"github.com/deckhand-dev/deckhand/runner/internal/config"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/place"
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/egress"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// MainLocal is the same program by hand: without a cluster, in directories of
// one's own. Events go to standard output, and the exit code is the contract's.
func MainLocal(options ...Option) int {
	f, err := flags(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return task.ExitBadTask
	}
	return runAttempt(f.environment(), options)
}

// localFlags are the flags of runner-local. A key is never a flag: flags are
// seen by every user of the machine.
type localFlags struct {
	task, workspace, state, keyFile, keyEnv, secrets, signals, sandbox string
	// given are the Secrets that came with the task; nil: none can come.
	given *secretValues
}

func flags(args []string, usage io.Writer) (localFlags, error) {
	f := localFlags{given: &secretValues{}}
	set := flag.NewFlagSet("runner-local", flag.ContinueOnError)
	set.SetOutput(usage)
	set.StringVar(&f.task, "task", "", "file with the task and its snapshot, as JSON; - for standard input, which may also have the secrets")
	set.StringVar(&f.workspace, "workspace", "", "directory that the model works on")
	set.StringVar(&f.state, "state", "", "directory of the journal; the same one again resumes the session")
	set.StringVar(&f.keyFile, "key-file", "", "file with the Model's key")
	set.StringVar(&f.keyEnv, "key-env", "", "name of the environment variable with the Model's key")
	set.StringVar(&f.secrets, "secrets", "", "directory with a directory for each Secret and in it a file for each key, where there are several")
	set.StringVar(&f.signals, "signals", "", "file with what the operator would say, as JSON: {\"stop\":true}, or decisions; it may change meanwhile")
	set.StringVar(&f.sandbox, "sandbox", "", "directory with the socket run/exec.sock of a sandbox, for Shell and Python: sandbox serve -socket DIR/run/exec.sock")
	if err := set.Parse(args); err != nil {
		return f, err
	}
	switch {
	case f.task == "" || f.workspace == "" || f.state == "":
		return f, errors.New("say --task FILE, --workspace DIR and --state DIR")
	case f.keyEnv != "" && os.Getenv(f.keyEnv) == "":
		return f, fmt.Errorf("the environment variable %s, named by --key-env, is not set", f.keyEnv)
	case set.NArg() > 0:
		return f, fmt.Errorf("%q is no flag", set.Arg(0))
	}
	return f, nil
}

func (f localFlags) environment() environment {
	commandDir, err := filepath.Abs(f.workspace)
	if err != nil {
		commandDir = f.workspace
	}
	return environment{
		commandDir:  commandDir,
		task:        f.read,
		key:         f.key,
		signalsFile: f.signals,
		byHand:      true,
		place:       place.Local,
		state:       f.state,
		workspace:   f.workspace,
		sandbox:     f.sandbox,
		secrets:     f.secrets,
		stdout:      os.Stdout,
		log:         slog.New(slog.NewTextHandler(os.Stderr, nil)),
		now:         clock.Now,
		reporter: func(environment, task.Task, func(error)) (reporter, error) {
			return noReporter{}, nil
		},
	}
}

// key returns the function that reads a key of a Secret.
func (f localFlags) key(k task.SecretKey) func() (string, error) {
	if f.given != nil {
		if value, found := (*f.given)[k.Secret][k.Key]; found {
			return func() (string, error) { return value, nil }
		}
	}
	switch {
	case f.secrets != "":
		return config.KeyFile(filepath.Join(f.secrets, k.Secret, k.Key))
	case f.keyFile != "":
		return config.KeyFile(f.keyFile)
	case f.keyEnv != "":
		return func() (string, error) { return strings.TrimSpace(os.Getenv(f.keyEnv)), nil }
	}
	return func() (string, error) {
		return "", errors.New("say --key-file FILE or --key-env NAME, or, for more than one Secret, --secrets DIR")
	}
}

// secretValues are the values of keys of Secrets, by the name of the Secret and the key.
type secretValues map[string]map[string]string

// localTask is the file of a task without an operator. Fields that the operator would fill in may be missing.
type localTask struct {
	Task     task.Task     `json:"task"`
	Snapshot task.Snapshot `json:"snapshot"`
	Secrets  secretValues  `json:"secrets,omitempty"`
}

func (f localFlags) read() (input, error) {
	data, err := f.readTask()
	if err != nil {
		return input{}, fmt.Errorf("reading the task: %w", err)
	}
	var t localTask
	if err := config.Decode(bytes.TrimSpace(data), &t); err != nil {
		return input{}, fmt.Errorf("reading the task %s: %w", f.task, err)
	}
	if f.given != nil {
		*f.given = t.Secrets
	}
	t.fillIn()
	t.Task.Run.UID = cmp.Or(t.Task.Run.UID, uniqueUID("local", f.state))
	for _, k := range config.Secrets(t.Snapshot) {
		if _, err := f.key(k)(); err != nil {
			return input{}, fmt.Errorf("reading the key %s of the Secret %s: %w", k.Key, k.Secret, err)
		}
	}
	return t.encode()
}

// encode returns a task as an operator would send it.
func (t *localTask) encode() (input, error) {
	snapshot, err := json.Marshal(t.Snapshot)
	if err != nil {
		return input{}, fmt.Errorf("encoding the snapshot: %w", err)
	}
	t.Task.SnapshotHash = task.Hash(snapshot)
	whole, err := json.Marshal(t.Task)
	if err != nil {
		return input{}, fmt.Errorf("encoding the task: %w", err)
	}
	return input{task: whole, snapshot: snapshot}, nil
}

// uniqueUID returns a UID for a Run that no cluster knows. It begins with a name. The Run whose journal is in the state
// directory keeps its UID, because it is continued. Any other Run gets a new one: servers recognize repeated requests by
// it.
func uniqueUID(name, state string) string {
	if owner := journal.Owner(state); owner == name || strings.HasPrefix(owner, name+"-") {
		return owner
	}
	return name + "-" + rand.Text()
}

func (f localFlags) readTask() ([]byte, error) {
	if f.task == "-" {
		return io.ReadAll(os.Stdin)
	}
	return os.ReadFile(f.task)
}

// fillIn gives a task by hand what a cluster would.
func (t *localTask) fillIn() {
	t.Task.Version = cmp.Or(t.Task.Version, task.Version)
	t.Task.Attempt = cmp.Or(t.Task.Attempt, 1)
	t.Task.Run.Namespace = cmp.Or(t.Task.Run.Namespace, "local")
	t.Task.Run.Name = cmp.Or(t.Task.Run.Name, "local")
	t.Task.Durable = true // a directory of one's own outlives the process
	t.Task.Limits.Steps = cmp.Or(t.Task.Limits.Steps, 30)
	t.Task.Limits.Depth = cmp.Or(t.Task.Limits.Depth, 3)
	t.Snapshot.Version = cmp.Or(t.Snapshot.Version, task.SnapshotVersion)
	t.Snapshot.Agent.Name = cmp.Or(t.Snapshot.Agent.Name, "local")
	t.Snapshot.Agent.Events = cmp.Or(t.Snapshot.Agent.Events, "Full")
	agents := []*task.Agent{&t.Snapshot.Agent}
	for i := range t.Snapshot.Agents {
		agents = append(agents, &t.Snapshot.Agents[i])
	}
	for _, a := range agents {
		a.ParallelTools = cmp.Or(a.ParallelTools, 10)
		if a.Limits != (task.Limits{}) {
			a.Limits.Depth = cmp.Or(a.Limits.Depth, 3)
		}
	}
}

// sandboxClients are the connections to the containers beside the runner's.
type sandboxClients struct {
	mu   sync.Mutex
	open []*sandbox.Client
}

// dial makes a client of the container that shares a directory.
func (s *sandboxClients) dial(dir string) sandbox.Sandbox {
	c := sandbox.Dial(filepath.Join(dir, task.SandboxSocket))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open = append(s.open, c)
	return c
}

func (s *sandboxClients) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.open {
		_ = c.Close() // it is over either way
	}
}

// sandboxClient is the sandbox of the Run; nil: there is none. With it goes the way out for
// its commands.
func (a *attempt) sandboxClient(ctx context.Context) sandbox.Sandbox {
	want := a.snapshot.Sandbox
	if want == nil || a.sandbox == "" {
		return nil
	}
	go func() {
		err := egress.Serve(ctx, filepath.Join(a.sandbox, task.ProxySocket), egress.Options{
			Hosts:   want.Hosts,
			Refused: a.refusals.add,
			Log: func(host string, allowed bool) {
				a.log.Warn("A command reaches out", "host", host, "allowed", allowed, "audit", "egress")
			},
		})
		if err != nil && ctx.Err() == nil {
			a.log.Error("Commands have no way out", "error", err)
		}
	}()
	return a.sandboxes.dial(a.sandbox)
}

// serverClients finds the container of the MCP server of a Toolset; nil: there are none.
func (a *attempt) serverClients() func(toolset string) sandbox.Sandbox {
	if a.servers == "" {
		return nil
	}
	return func(toolset string) sandbox.Sandbox { return a.sandboxes.dial(filepath.Join(a.servers, toolset)) }
}

// showConfinement reports how commands are confined. Where the confinement is not required, nothing
// waits for NetworkPolicies: the status has PortsOnly until they were shown to be enforced.
func (a *attempt) showConfinement(ctx context.Context, status *statusReporter, c sandbox.Confinement) {
	show := func(network string) {
		status.showConfinement(&task.Confinement{Process: c.Process, Files: c.Files, Network: network, LandlockABI: c.LandlockABI})
	}
	show(c.Network)
	if c.Network != sandbox.PortsOnly || a.network == nil {
		return
	}
	go func() {
		switch f := a.network(ctx); {
		case f.State == networkcheck.Closed:
			show(sandbox.Enforced)
		case f.State == networkcheck.Unknown && ctx.Err() == nil:
			a.log.Warn("It is unknown whether NetworkPolicies are enforced", "error", f.Err)
		}
	}()
}

// printableProgress is what a runner reports without control characters: models, servers and file
// names choose most of its text, and programs such as kubectl -o jsonpath print it to terminals as
// it is.
func printableProgress(p task.Progress) task.Progress {
	p.Model = redact.Printable(p.Model)
	if w := p.ModelWait; w != nil {
		wait := *w
		wait.Model, wait.Message = redact.Printable(w.Model), redact.Printable(w.Message)
		p.ModelWait = &wait
	}
	if s := p.Step; s != nil {
		step := *s
		step.Name = redact.Printable(s.Name)
		p.Step = &step
	}
	p.Recent = slices.Clone(p.Recent)
	for i := range p.Recent {
		r := &p.Recent[i]
		r.Name, r.Summary = redact.Printable(r.Name), redact.Printable(r.Summary)
	}
	p.Pending = slices.Clone(p.Pending)
	for i := range p.Pending {
		q := &p.Pending[i]
		q.Agent, q.Question, q.Tool, q.Rule = redact.Printable(q.Agent), redact.Printable(q.Question), redact.Printable(q.Tool), redact.Printable(q.Rule)
		if q.Kind != task.PendingDelegation { // the input of a child Run, which is not changed
			q.Args, q.Schema = printableJSON(q.Args, task.MaxArgs), printableJSON(q.Schema, task.MaxSchema)
		}
	}
	p.Decided = slices.Clone(p.Decided)
	for i := range p.Decided {
		p.Decided[i].Refused = redact.Printable(p.Decided[i].Refused)
	}
	if p.Result != nil {
		r := printableResult(*p.Result)
		p.Result = &r
	}
	return p
}

// printableResult is a result without control characters.
func printableResult(r task.Result) task.Result {
	r.Message, r.Warning, r.Text = redact.Printable(r.Message), redact.Printable(r.Warning), redact.Printable(r.Text)
	r.Output = printableJSON(r.Output, task.MaxOutput)
	r.Files = slices.Clone(r.Files)
	for i := range r.Files {
		r.Files[i].Path = printableLine(r.Files[i].Path)
	}
	if r.Published != nil {
		published := *r.Published
		published.Branch = printableLine(published.Branch)
		r.Published = &published
	}
	return r
}

// printableLine is a name with a question mark in place of line ends and tabs.
func printableLine(name string) string {
	return strings.NewReplacer("\n", "?", "\t", "?").Replace(redact.Printable(name))
}

// printableJSON is JSON, or a part of it, with the same value, in which characters that
// [redact.Printable] would drop are escaped. They are dropped if the text is then longer than most.
func printableJSON(text string, most int) string {
	if redact.Printable(text) == text {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		if shown := string(r); redact.Printable(shown) == shown {
			out.WriteRune(r)
		} else {
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	if out.Len() > most {
		return redact.Printable(text)
	}
	return out.String()
}
