package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/internal/cli/exit"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A memo has the facts of a local Run that a Run needs to continue it. It lies beside the journal.
type memo struct {
	UID string `json:"uid"`
	// Directory is where the agent worked.
	Directory string `json:"directory"`

	name  string // of the Run
	state string // its directory
	ended time.Time
}

func (p place) memo() string { return filepath.Join(p.state, "run.json") }

// write writes the memo of the Run of a place, whole or not at all.
func (m memo) write(p place) error {
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	unfinished := p.memo() + ".new"
	return errors.Join(os.WriteFile(unfinished, data, 0o600), os.Rename(unfinished, p.memo()))
}

// readMemo returns the memo of the local Run with a name.
func readMemo(base, name string) (memo, error) {
	p := place{state: filepath.Join(base, name)}
	data, err := os.ReadFile(p.memo())
	if err != nil {
		return memo{}, err
	}
	m := memo{name: name, state: p.state}
	if err := json.Unmarshal(data, &m); err != nil {
		return memo{}, fmt.Errorf("reading %s: %w", p.memo(), err)
	}
	if info, err := os.Stat(p.log()); err == nil {
		m.ended = info.ModTime()
	}
	return m, nil
}

// hasBegun reports whether the Run has a journal of its own.
func (m memo) hasBegun() bool {
	entries, _ := os.ReadDir(place{state: m.state}.journal())
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return strings.HasPrefix(e.Name(), "journal-") })
}

// lastRun is the value of --continue without one.
const lastRun = "."

// source returns the Run that --continue names, which worked in a directory; nil: the flag is not given.
func (r Run) source(dir string) (*memo, error) {
	name, isGiven := r.Flags.source, r.Flags.isContinue()
	switch {
	case !isGiven && r.Flags.step != 0:
		return nil, exit.Usagef("--step says up to which step a Run is continued: name the Run with --continue=NAME, or leave it out")
	case !isGiven:
		return nil, nil //nolint:nilnil // most Runs continue none
	case name == "":
		return nil, exit.Usagef("--continue= has no name: write --continue=NAME, or --continue alone for the last Run in the directory")
	case r.Flags.step < 0:
		return nil, exit.Usagef("--step %d: write the number of a step, as in s%d of the conversation", r.Flags.step, -r.Flags.step)
	case strings.TrimSpace(r.Description.Prompt) == "":
		return nil, exit.Usagef("say with -p what the agent should do next")
	}
	base, err := stateDir()
	if err != nil {
		return nil, err
	}
	if target := r.Description.Target; name == lastRun && target != "" {
		if _, err := readMemo(base, target); err == nil {
			return nil, exit.Usagef("--continue %s: write --continue=%s, because %s would be an Agent", target, target, target)
		}
	}
	m, err := findSource(base, name, dir)
	if err != nil {
		return nil, err
	}
	if isLocked(filepath.Join(place{state: m.state}.journal(), "lock")) {
		return nil, exit.Usagef("the local Run %s is at work: wait for its end, or end it with Ctrl-C", m.name)
	}
	return m, nil
}

// findSource returns a local Run that worked in a directory: the one with a name, or the last.
func findSource(base, name, dir string) (*memo, error) {
	all, err := memos(base)
	if err != nil {
		return nil, err
	}
	var here []string
	for _, m := range all {
		isWanted := m.name == name || name == lastRun && m.hasBegun()
		switch {
		case m.Directory == dir && isWanted && !m.hasBegun():
			return nil, exit.Usagef("the local Run %s ended before it began, and has nothing to continue: name another one", name)
		case m.Directory == dir && isWanted:
			return &m, nil
		case m.Directory == dir && m.hasBegun():
			here = append(here, m.name)
		case m.name == name:
			return nil, exit.Usagef("the local Run %s worked in %s: name this directory with -C", name, m.Directory)
		}
	}
	return nil, notFound(base, name, dir, here)
}

// notFound returns the error for a Run that is not among those of a directory.
func notFound(base, name, dir string, here []string) error {
	if name != lastRun && filepath.IsLocal(name) {
		_, err := readMemo(base, name)
		_, missing := os.Stat(filepath.Join(base, name))
		switch {
		case missing == nil && errors.Is(err, fs.ErrNotExist):
			return exit.Usagef("the local Run %s is of an earlier version of this program, and cannot be continued", name)
		case missing == nil && err != nil:
			return exit.Usagef("the local Run %s cannot be continued: %v", name, err)
		}
	}
	if len(here) == 0 {
		return exit.Usagef("no local Run worked in %s that could be continued: leave out --continue, or name another directory with -C", dir)
	}
	return exit.Usagef("there is no local Run %s. In %s worked: %s", name, dir, strings.Join(here, ", "))
}

// memos returns the memos of all local Runs that have a readable one, the last first.
func memos(base string) ([]memo, error) {
	entries, err := os.ReadDir(base)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var all []memo
	for _, e := range entries {
		if m, err := readMemo(base, e.Name()); err == nil {
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b memo) int { return b.ended.Compare(a.ended) })
	return all, nil
}

// continues sets the Run whose session this one continues.
func (r *runnerInput) continues(m memo, step int64) {
	c := &task.Continue{Run: m.name, RunUID: m.UID, Step: step}
	r.Task.Continue = c
	r.notes = append(r.notes, "It continues the Run "+m.name+".")
	if step != 0 {
		r.notes = append(r.notes, fmt.Sprintf("Calls of the Run %s after step %d are not in the session of this one, which may make them again. Files are as they are now.", m.name, step))
	}
}

// begin prepares the place for its Run. If that fails, the name can be used again.
func (p place) begin(m memo, source *memo) error {
	err := m.write(p)
	if err == nil && source != nil {
		err = p.copySession(*source)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(p.state))
	}
	return nil
}

// copySession copies the journal of the Run that is continued, with the files of its session.
func (p place) copySession(m memo) error {
	from := place{state: m.state}.journal()
	if err := os.CopyFS(filepath.Join(p.journal(), task.SourceFolder), sessionFS{os.DirFS(from)}); err != nil {
		return fmt.Errorf("copying the journal of the Run %s: %w", m.name, err)
	}
	return nil
}

// A sessionFS has the regular files of a state directory but for those of its runner: its lock, and the space that it
// reserved.
type sessionFS struct{ fs.FS }

// ReadDir implements [fs.ReadDirFS].
func (s sessionFS) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(s.FS, name)
	return slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		isRunners := name == "." && (e.Name() == "lock" || e.Name() == "reserve")
		return isRunners || !e.IsDir() && !e.Type().IsRegular()
	}), err
}
