package runner

import (
	"io"
	"log/slog"
	"time"

	"github.com/deckhand-dev/deckhand/runner/task"
)

// A place is where an attempt finds what it needs and leaves what it has to
// say: a pod, or a few directories.
type place struct {
	task func() (input, error)
	// key says how a key of a Secret is read.
	key       func(task.SecretKey) func() (string, error)
	signals   string // empty: nobody signals
	byHand    bool   // a person writes them, and wants to be told of typos
	state     string
	origin    string // what several Runs know together of one workspace; empty: it is this Run's own
	workspace string
	sandbox   string // the directory that it shares with the runner; empty: there is none
	servers   string // the directory of those of MCP servers; empty: there are none
	secrets   string // the directory of Secrets
	last      string // the termination message; empty: nobody reads one
	stdout    io.Writer
	log       *slog.Logger
	now       func() time.Time
	reporter  func(p place, t task.Task, ended func(error)) (reporter, error)
}

// An input is a task as it was sent.
type input struct {
	task, snapshot []byte
}
