package local

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A place has the directories of a local Run.
type place struct {
	state   string // the journal, the log and the home of commands, kept
	sandbox string // the sockets, and the temporary files of commands
	// lock is on a file of sandbox until this program and the runner, which inherits it, have ended.
	lock *os.File
}

const (
	sandboxPrefix = "deckhand-run-"
	lockName      = "in-use"
)

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
	removeAbandoned(os.TempDir())
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

// taken returns the error for a name that another local Run has, or had.
func (p place) taken(run string) error {
	if isLocked(filepath.Join(p.journal(), "lock")) {
		return exit.Usagef("the local Run %s is at work, and its journal is in %s: wait for its end, or choose another --name", run, p.state)
	}
	return exit.Usagef("there was a local Run %s, whose journal is in %s: choose another --name, and --continue=%s if its session should be continued", run, p.state, run)
}

// fill makes the directories in it.
func (p place) fill() (place, error) {
	var err error
	if p.sandbox, err = os.MkdirTemp("", sandboxPrefix); err != nil {
		return p, err
	}
	for _, dir := range []string{p.journal(), p.home(), p.temp(), filepath.Dir(p.socket())} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			return p, errors.Join(err, os.RemoveAll(p.sandbox))
		}
	}
	if p.lock, err = lockDirectory(p.sandbox); err != nil {
		return p, errors.Join(err, os.RemoveAll(p.sandbox))
	}
	return p, nil
}

// lockDirectory marks a directory as in use. The file has its name only when it is locked: no other program finds it
// unlocked.
func lockDirectory(dir string) (*os.File, error) {
	path := filepath.Join(dir, lockName)
	f, err := os.OpenFile(path+".new", os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(lockFile(f), os.Rename(f.Name(), path)); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// removeAbandoned removes the directories that local Runs of this user left because they were killed. What cannot be
// removed stays: it harms no other Run.
func removeAbandoned(in string) {
	entries, _ := os.ReadDir(in)
	for _, e := range entries {
		dir := filepath.Join(in, e.Name())
		if strings.HasPrefix(e.Name(), sandboxPrefix) && isOwn(dir) && isUnlocked(filepath.Join(dir, lockName)) {
			_ = os.RemoveAll(dir)
		}
	}
}

func (p place) journal() string { return filepath.Join(p.state, "journal") }
func (p place) signals() string { return filepath.Join(p.state, "signals.json") }
func (p place) log() string     { return filepath.Join(p.state, "runner.log") }
func (p place) home() string    { return filepath.Join(p.sandbox, "home") }
func (p place) temp() string    { return filepath.Join(p.sandbox, "tmp") }
func (p place) socket() string  { return filepath.Join(p.sandbox, task.SandboxSocket) }

func (p place) close() {
	_ = os.RemoveAll(p.sandbox) // the next Run and the system try it, too
	_ = p.lock.Close()
}

// systemDirectories belong to the system, according to the Filesystem Hierarchy Standard. An agent that works there
// could change how the machine starts, or who can log in.
var systemDirectories = []string{
	"/boot", "/dev", "/etc", "/proc", "/run", "/sys", "/usr",
	"/bin", "/lib", "/lib32", "/lib64", "/libx32", "/sbin", // most systems have them in /usr
	"/var/cache", "/var/db", "/var/lib", "/var/lock", "/var/log", "/var/mail", "/var/run", "/var/spool",
}

// usersDirectories are directories below system directories whose files belong to users: source code,
// as images of containers have it, and files in memory.
var usersDirectories = []string{"/dev/shm", "/usr/local/src", "/usr/src"}

// systemDirectory returns the system directory that contains a real path or is within it, or an empty text.
func systemDirectory(dir string) string {
	if slices.ContainsFunc(usersDirectories, func(of string) bool { return isInside(of, dir) }) {
		return ""
	}
	for _, system := range systemDirectories {
		target, err := filepath.EvalSymlinks(system)
		if err != nil {
			target = system // it does not exist here
		}
		if dir == target || isInside(target, dir) || isInside(dir, target) {
			return system
		}
	}
	return ""
}

// isServiceHome reports whether a path is in the home of a user that runs a service, such as
// /var/lib/jenkins, whose work is there.
func isServiceHome(home, path string) bool {
	return isInside("/var/lib", home) && isInside(home, path)
}

// isInside reports whether a real path is in a directory, and is not the directory itself.
func isInside(dir, path string) bool {
	in, err := filepath.Rel(dir, path)
	return dir != "" && err == nil && in != "." && filepath.IsLocal(in)
}
