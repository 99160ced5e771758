package output

import (
	"cmp"
	"time"

	"github.com/deckhand-dev/deckhand/runner/task"
)

// How long a call may take.
const (
	DefaultTimeout = 2 * time.Minute
	MaxTimeout     = 6 * time.Hour
)

// Options are what the tools that run one program have in common, for all agents
// of a Run. Only Program has no default.
type Options struct {
	// Program is its path in the image.
	Program string
	// Workspace is where it starts.
	Workspace string
	// Timeout bounds a call that says nothing; MaxTimeout one that does.
	Timeout, MaxTimeout time.Duration
	// State is a directory of the runner's own that outlives it; empty: there is
	// none, and nothing is remembered.
	State string
	// Overflow puts the whole of an output that is cut where the model finds it,
	// in a file named after a call, and returns the path that the model knows it
	// by. Nil: the whole is lost.
	Overflow Overflow
}

// Complete fills in what is left out, and opens the place of outputs.
func (o Options) Complete() (Options, Place, error) {
	o.Workspace = cmp.Or(o.Workspace, task.Workspace)
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	o.MaxTimeout = cmp.Or(o.MaxTimeout, MaxTimeout)
	calls, err := OpenCalls(o.State)
	return o, Place{State: o.State, Calls: calls, Overflow: o.Overflow}, err
}

// A Use is how one agent has a tool.
type Use struct {
	// Name is what the tool is called; empty: as it calls itself.
	Name string
	// Timeout bounds a call that says nothing; 0: that of the Options.
	Timeout time.Duration
}

// Complete fills in what is left out.
func (u Use) Complete(name string, o Options) Use {
	return Use{Name: cmp.Or(u.Name, name), Timeout: min(cmp.Or(u.Timeout, o.Timeout), o.MaxTimeout)}
}
