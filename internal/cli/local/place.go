package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A place has the directories of a local Run.
type place struct {
	state   string // the journal, the log and the home of commands, kept
	sandbox string // the sockets, and the temporary files of commands
}

// stateDir returns the directory of all local Runs, as the XDG Base Directory
// Specification says.
func stateDir() (string, error) {
	base := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(base) {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("finding a place for the journal: %w: set HOME or XDG_STATE_HOME", err)
		}
		base = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(base, "deckhand", "runs"), nil
}

// newPlace makes the directories. A socket needs a short path.
func newPlace(run string) (place, error) {
	var p place
	base, err := stateDir()
	if err != nil {
		return p, err
	}
	p.state = filepath.Join(base, run)
	if err := os.MkdirAll(filepath.Dir(p.state), 0o700); err != nil {
		return p, err
	}
	if err := os.Mkdir(p.state, 0o700); errors.Is(err, os.ErrExist) {
		return p, p.taken(run)
	} else if err != nil {
		return p, err
	}
	filled, err := p.fill()
	if err != nil { // the name can be used again
		return p, fmt.Errorf("making directories for the Run: %w. Choose another place with TMPDIR or XDG_STATE_HOME", errors.Join(err, os.RemoveAll(p.state)))
	}
	return filled, nil
}

// taken says that a Run has the place already. The journal of a Run that works must stay.
func (p place) taken(run string) error {
	if isLocked(filepath.Join(p.journal(), "lock")) {
		return exit.Usagef("the local Run %s is at work, and its journal is in %s: wait for its end, or choose another --name", run, p.state)
	}
	return exit.Usagef("there was a local Run %s, whose journal is in %s: choose another --name, and --continue=%s if its session should be continued", run, p.state, run)
}

// fill makes the directories in it.
func (p place) fill() (place, error) {
	var err error
	if p.sandbox, err = os.MkdirTemp("", "deckhand-"); err != nil {
		return p, err
	}
	for _, dir := range []string{p.journal(), p.home(), p.temp(), filepath.Dir(p.socket())} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return p, errors.Join(err, os.RemoveAll(p.sandbox))
		}
	}
	return p, nil
}

func (p place) journal() string { return filepath.Join(p.state, "journal") }
func (p place) signals() string { return filepath.Join(p.state, "signals.json") }
func (p place) log() string     { return filepath.Join(p.state, "runner.log") }
func (p place) home() string    { return filepath.Join(p.sandbox, "home") }
func (p place) temp() string    { return filepath.Join(p.sandbox, "tmp") }
func (p place) socket() string  { return filepath.Join(p.sandbox, task.SandboxSocket) }
func (p place) close()          { _ = os.RemoveAll(p.sandbox) } // the system empties the directory, too
