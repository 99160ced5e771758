package supervise

import (
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
)

// Assignment are what the server tells a supervisor to run.
type Assignment struct {
	Command  sandbox.Command
	Env      []string // whole, sorted out by the server
	OOMKills int64    // how often the kernel has ended a process for memory so far
}

// The files that a supervisor finds open.
const (
	RunnerFile = 3 // the runner's connection
	ServerFile = 4 // the server's
)
