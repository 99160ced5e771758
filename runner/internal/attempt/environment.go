package attempt

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"time"

	"github.com/deckhand-dev/deckhand/internal/shared/clock"
	"github.com/deckhand-dev/deckhand/internal/shared/networkcheck"
	"github.com/deckhand-dev/deckhand/internal/shared/report"
	"github.com/deckhand-dev/deckhand/runner/internal/config"
	"github.com/deckhand-dev/deckhand/runner/internal/engine"
	"github.com/deckhand-dev/deckhand/runner/internal/eventlog"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/place"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// An Environment is where an attempt reads its input and writes its output: a pod, or a
// few directories.
type Environment struct {
	Task func() (Input, error)
	// Key returns the function that reads a key of a Secret.
	Key         func(task.SecretKey) func() (string, error)
	SignalsFile string      // empty: there are no signals
	ByHand      bool        // a user writes the signals by hand: unknown fields are errors
	Place       place.Place // where the attempt is made
	State       string
	Workspace   string
	CommandDir  string // the path of the workspace for commands; empty: /workspace
	Sandbox     string // the directory that it shares with the runner; empty: there is none
	Secrets     string // the directory of Secrets
	Stdout      io.Writer
	Log         *slog.Logger
	Now         func() time.Time
	// Subscribe is called with the feed before the first event; nil: there is no subscriber.
	Subscribe func(*eventlog.Feed)

	// Only a pod has these.

	origin         string // the state that several Runs share about one workspace; empty: it is this Run's own
	source         string // the directories of the Run that is continued
	skills         string // the directory of the skills; empty: there are none
	skillFiles     string // the directory of the ConfigMaps that skills come from
	home           string // of commands, for the copy of that of the Run that is continued; empty: there is none
	size           int64  // of the workspace in bytes; zero: no bound
	servers        string // the directory of the sandboxes of MCP servers; empty: there are none
	terminationLog string // the file of the termination message; empty: there is none
	// network tests whether NetworkPolicies close ports to this pod; nil: there are none.
	network func(context.Context) networkcheck.Finding
	// reporter opens the reporter to the status of the Run; nil: there is no Run to report to.
	reporter func(env Environment, t task.Task, ended func(error)) (reporter, error)

	// wrapJournal wraps the journal of the engine; nil: it is not wrapped. It is for tests.
	wrapJournal func(journal.Log) journal.Log
}

// An Input is the JSON of a task.
type Input struct {
	Task, Snapshot []byte
}

// A reporter is an engine's Reporter that can be closed.
type reporter interface {
	engine.Reporter
	Close()
}

// noReporter is the reporter if there is no Run to report to.
type noReporter struct{}

func (noReporter) Report(func() task.Progress) {}

func (noReporter) Begin(context.Context, func() task.Progress) error { return nil }

func (noReporter) Accepted() bool { return true }

func (noReporter) Commit(context.Context, func() task.Progress) error { return nil }

func (noReporter) Close() {}

// InPod returns the environment of an attempt in a runner pod.
func InPod() Environment {
	return Environment{
		Task: func() (Input, error) { return read(task.TaskFile, task.SnapshotFile) },
		Key: func(s task.SecretKey) func() (string, error) {
			return config.MountedKey(task.SecretsDir, s)
		},
		SignalsFile:    task.SignalsFile,
		State:          task.StateDir,
		origin:         mounted(task.OriginDir),
		source:         task.SourceDir,
		skills:         mounted(task.SkillsDir),
		skillFiles:     task.SkillFilesDir,
		home:           mounted(task.Home),
		Workspace:      task.Workspace,
		size:           workspaceSize(os.Getenv(task.EnvWorkspaceSize)),
		Sandbox:        task.SandboxDir,
		servers:        task.ServersDir,
		Secrets:        task.SecretsDir,
		network:        checkOfNetwork(os.Getenv(task.EnvNetworkCheck)),
		terminationLog: task.TerminationLog,
		Stdout:         os.Stdout,
		Log:            slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		Now:            clock.Now,
		reporter:       toCluster,
	}
}

// checkOfNetwork returns the function that tests whether NetworkPolicies close ports to this pod; nil: the operator has
// no address for it.
func checkOfNetwork(address string) func(context.Context) networkcheck.Finding {
	if address == "" {
		return nil
	}
	return networkcheck.New(address, clock.Now).Await
}

// workspaceSize returns a size in bytes; zero: there is none.
func workspaceSize(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// mounted returns dir if it exists, otherwise an empty path.
func mounted(dir string) string {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return ""
	}
	return dir
}

// read reads the two parts of a task.
func read(taskFile, snapshotFile string) (Input, error) {
	t, err := os.ReadFile(taskFile)
	if err != nil {
		return Input{}, fmt.Errorf("reading the task: %w", err)
	}
	s, err := os.ReadFile(snapshotFile)
	if err != nil {
		return Input{}, fmt.Errorf("reading the snapshot: %w", err)
	}
	return Input{Task: t, Snapshot: s}, nil
}

// toCluster reports to the Run's status.
func toCluster(env Environment, t task.Task, ended func(error)) (reporter, error) {
	target, err := report.InCluster(t.Run, task.TokenDir)
	if err != nil {
		return nil, err
	}
	return report.New(report.Options{
		Target: target, First: t.Attempt == 1 && !t.Durable, Now: env.Now, Ended: ended, Log: env.Log,
		Jitter: func(d time.Duration) time.Duration { return d*3/4 + rand.N(d/2+1) }, //nolint:gosec // spreads load, keeps no secret
	}), nil
}
