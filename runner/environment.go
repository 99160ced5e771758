package runner

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/deckhand-dev/deckhand/internal/shared/networkcheck"
	"github.com/deckhand-dev/deckhand/runner/internal/eventlog"
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/place"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// An environment is where an attempt reads its input and writes its output: a pod, or a
// few directories.
type environment struct {
	task func() (input, error)
	// key says how a key of a Secret is read.
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
	// network finds out whether NetworkPolicies close ports to this pod; nil: it has none.
	network  func(context.Context) networkcheck.Finding
	last     string // the file of the termination message; empty: there is none
	stdout   io.Writer
	log      *slog.Logger
	now      func() time.Time
	reporter func(p environment, t task.Task, ended func(error)) (reporter, error)
	// subscribe is called with the events before the first; nil: nothing follows them.
	subscribe func(*eventlog.Feed)
	// wrapJournal wraps the journal to which the engine writes; nil: it is not wrapped. Only
	// tests have one.
	wrapJournal func(journal.Log) journal.Log
}

// An input is a task as it was sent.
type input struct {
	task, snapshot []byte
}
