package runner

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/deckhand-dev/deckhand/internal/shared/clock"
	"github.com/deckhand-dev/deckhand/runner/internal/attempt"
	"github.com/deckhand-dev/deckhand/runner/internal/config"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/place"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// MainLocal is the program of runner-local: it makes an attempt without a cluster, in local directories. It prints
// events to standard output, and returns the exit code of a runner.
func MainLocal(options ...Option) int {
	f, err := flags(os.Args[1:], os.Stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return task.ExitBadTask
	}
	return attempt.Main(f.environment(), registryOf(options))
}

// localFlags are the flags of runner-local. A key is never a flag: flags are
// seen by every user of the machine.
type localFlags struct {
	task, workspace, state, keyFile, keyEnv, secrets, signals, sandbox string
	// given are the Secrets in the file of the task; nil: the file cannot have any.
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

func (f localFlags) environment() attempt.Environment {
	commandDir, err := filepath.Abs(f.workspace)
	if err != nil {
		commandDir = f.workspace
	}
	return attempt.Environment{
		CommandDir:  commandDir,
		Task:        f.read,
		Key:         f.key,
		SignalsFile: f.signals,
		ByHand:      true,
		Place:       place.Local,
		State:       f.state,
		Workspace:   f.workspace,
		Sandbox:     f.sandbox,
		Secrets:     f.secrets,
		Stdout:      os.Stdout,
		Log:         slog.New(slog.NewTextHandler(os.Stderr, nil)),
		Now:         clock.Now,
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

func (f localFlags) read() (attempt.Input, error) {
	data, err := f.readTask()
	if err != nil {
		return attempt.Input{}, fmt.Errorf("reading the task: %w", err)
	}
	var t localTask
	if err := config.Decode(bytes.TrimSpace(data), &t); err != nil {
		return attempt.Input{}, fmt.Errorf("reading the task %s: %w", f.task, err)
	}
	if f.given != nil {
		*f.given = t.Secrets
	}
	t.fillIn()
	t.Task.Run.UID = cmp.Or(t.Task.Run.UID, uniqueUID("local", f.state))
	for _, k := range config.Secrets(t.Snapshot) {
		if _, err := f.key(k)(); err != nil {
			return attempt.Input{}, fmt.Errorf("reading the key %s of the Secret %s: %w", k.Key, k.Secret, err)
		}
	}
	return t.encode()
}

// encode returns a task as an operator would send it.
func (t *localTask) encode() (attempt.Input, error) {
	snapshot, err := json.Marshal(t.Snapshot)
	if err != nil {
		return attempt.Input{}, fmt.Errorf("encoding the snapshot: %w", err)
	}
	t.Task.SnapshotHash = task.Hash(snapshot)
	whole, err := json.Marshal(t.Task)
	if err != nil {
		return attempt.Input{}, fmt.Errorf("encoding the task: %w", err)
	}
	return attempt.Input{Task: whole, Snapshot: snapshot}, nil
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

// fillIn sets the fields that the operator would set in a cluster.
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
