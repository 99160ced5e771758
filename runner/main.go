package runner

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/deckhand-dev/deckhand/internal/shared/clock"
	"github.com/deckhand-dev/deckhand/internal/shared/gomemlimit"
	"github.com/deckhand-dev/deckhand/internal/shared/networkcheck"
	"github.com/deckhand-dev/deckhand/internal/shared/report"
	"github.com/deckhand-dev/deckhand/runner/internal/config"
	"github.com/deckhand-dev/deckhand/runner/internal/engine"
	"github.com/deckhand-dev/deckhand/runner/internal/eventlog"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/place"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// Main is the program of a runner pod. With one argument it is also the program of the
// container that prepares the workspace, and of the liveness probe. It takes no flags.
// Except for the probe and for sending files it runs only as the first process of its
// container: a user who may exec into the pod must not be able to start a second runner with
// another task.
func Main(options ...Option) int {
	if len(os.Args) == 2 && os.Args[1] == task.LivenessMode {
		return probe(task.TerminationLog, clock.Now())
	}
	if len(os.Args) == 3 && os.Args[1] == task.FilesMode {
		return sendFiles(os.Stdout, os.Stderr, task.Workspace, os.Args[2])
	}
	if os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "This program is the first process of a runner pod and nothing else; by hand, use runner-local.")
		return task.ExitBadTask
	}
	if len(os.Args) == 2 && os.Args[1] == task.FilesMode {
		return waitForTermination()
	}
	// The runner, the sandbox and fetch share a group; each may change the files
	// of the others.
	syscall.Umask(0o002)
	gomemlimit.Fit()
	trust(task.CAFile)
	if len(os.Args) == 2 && os.Args[1] == task.FetchMode {
		return fetch(inPod())
	}
	return runAttempt(inPod(), options)
}

// trust adds a bundle of certificates to the system's, if there is one. It is called before the first connection.
func trust(bundle string) {
	if _, err := os.Stat(bundle); err == nil {
		_ = os.Setenv("SSL_CERT_DIR", systemCertificates+":"+filepath.Dir(bundle)) // a name without "=": cannot fail
	}
}

// systemCertificates is the directory where images have their trusted certificates.
const systemCertificates = "/etc/ssl/certs"

// inPod is the environment that the operator prepares in a runner pod.
func inPod() environment {
	return environment{
		task: func() (input, error) { return read(task.TaskFile, task.SnapshotFile) },
		key: func(s task.SecretKey) func() (string, error) {
			return config.MountedKey(task.SecretsDir, s)
		},
		signalsFile: task.SignalsFile,
		state:       task.StateDir,
		origin:      mounted(task.OriginDir),
		workspace:   task.Workspace,
		size:        workspaceSize(os.Getenv(task.EnvWorkspaceSize)),
		sandbox:     task.SandboxDir,
		servers:     task.ServersDir,
		secrets:     task.SecretsDir,
		network:     checkOfNetwork(os.Getenv(task.EnvNetworkCheck)),
		last:        task.TerminationLog,
		stdout:      os.Stdout,
		log:         slog.New(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
		now:         clock.Now,
		reporter:    toCluster,
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

// mounted is a directory that need not be there; empty: it is not.
func mounted(dir string) string {
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return ""
	}
	return dir
}

// read reads the two parts of a task.
func read(taskFile, snapshotFile string) (input, error) {
	t, err := os.ReadFile(taskFile)
	if err != nil {
		return input{}, fmt.Errorf("reading the task: %w", err)
	}
	s, err := os.ReadFile(snapshotFile)
	if err != nil {
		return input{}, fmt.Errorf("reading the snapshot: %w", err)
	}
	return input{task: t, snapshot: s}, nil
}

// toCluster reports to the Run's status.
func toCluster(env environment, t task.Task, ended func(error)) (reporter, error) {
	target, err := report.InCluster(t.Run, task.TokenDir)
	if err != nil {
		return nil, err
	}
	return report.New(report.Options{
		Target: target, First: t.Attempt == 1 && !t.Durable, Now: env.now, Ended: ended, Log: env.log,
		Jitter: func(d time.Duration) time.Duration { return d*3/4 + rand.N(d/2+1) }, //nolint:gosec // spreads load, keeps no secret
	}), nil
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

// An environment is where an attempt reads its input and writes its output: a pod, or a
// few directories.
type environment struct {
	task func() (input, error)
	// key returns the function that reads a key of a Secret.
	key         func(task.SecretKey) func() (string, error)
	signalsFile string      // empty: there are no signals
	byHand      bool        // a user writes the signals by hand: unknown fields are errors
	place       place.Place // where the attempt is made
	state       string
	origin      string // the state that several Runs share about one workspace; empty: it is this Run's own
	workspace   string
	size        int64  // of the workspace in bytes; zero: no bound
	commandDir  string // the path of the workspace for commands; empty: /workspace
	sandbox     string // the directory that it shares with the runner; empty: there is none
	servers     string // the directory of the sandboxes of MCP servers; empty: there are none
	secrets     string // the directory of Secrets
	// network tests whether NetworkPolicies close ports to this pod; nil: there are none.
	network  func(context.Context) networkcheck.Finding
	last     string // the file of the termination message; empty: there is none
	stdout   io.Writer
	log      *slog.Logger
	now      func() time.Time
	reporter func(p environment, t task.Task, ended func(error)) (reporter, error)
	// subscribe is called with the feed before the first event; nil: there is no subscriber.
	subscribe func(*eventlog.Feed)
	// wrapJournal wraps the journal of the engine; nil: it is not wrapped. It is for tests.
	wrapJournal func(journal.Log) journal.Log
}

// An input is the JSON of a task.
type input struct {
	task, snapshot []byte
}
