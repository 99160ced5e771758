package output

import (
	"cmp"
	"time"

	"github.com/deckhand-dev/deckhand/runner/task"
)

// Bounds of the time of a call.
const (
	DefaultTimeout = 2 * time.Minute
	MaxTimeout     = 6 * time.Hour
)

// Options configure a tool that runs a program, for all agents of a Run. Only Program
// is required.
type Options struct {
	// Program is the path of the program in the image.
	Program string
	// Workspace is the working directory.
	Workspace string
	// Timeout is the default timeout of a call, MaxTimeout the largest.
	Timeout, MaxTimeout time.Duration
	// State is the state directory of the runner. Empty: no state is stored.
	State string
	// Overflow stores the complete output if it is truncated. Nil: it is not stored.
	Overflow Overflow
}

// Complete sets defaults and opens the captures.
func (o Options) Complete() (Options, Storage, error) {
	o.Workspace = cmp.Or(o.Workspace, task.Workspace)
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	o.MaxTimeout = cmp.Or(o.MaxTimeout, MaxTimeout)
	calls, err := OpenCalls(o.State)
	return o, Storage{State: o.State, Calls: calls, Overflow: o.Overflow}, err
}

// A Use configures a tool for one agent.
type Use struct {
	// Name is the name of the tool. Default: the name of its package.
	Name string
	// Timeout is the default timeout of a call. Default: Options.Timeout.
	Timeout time.Duration
}

// Complete sets defaults.
func (u Use) Complete(name string, o Options) Use {
	return Use{Name: cmp.Or(u.Name, name), Timeout: min(cmp.Or(u.Timeout, o.Timeout), o.MaxTimeout)}
}
