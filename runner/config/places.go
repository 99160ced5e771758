package config

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/backend/composite"
	"github.com/deckhand-dev/deckhand/runner/backend/state"
	"github.com/deckhand-dev/deckhand/runner/backend/store"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// places are what the file tools see of a Run, put together.
type places struct {
	all      *composite.Composite
	results  backend.Backend // what the model may only read
	memories backend.Backend
}

// placesOf mounts the workspace, what the session keeps beside it, and what a
// runner was built with.
func (r *Registry) placesOf(p Parts) (places, error) {
	scratch, err := p.kept("tmp")
	if err != nil {
		return places{}, err
	}
	results, err := p.kept("results")
	if err != nil {
		return places{}, err
	}
	memories := backend.Backend(store.New(store.NewMemory(store.MemoryOptions{Now: p.Now}), store.Options{Now: p.Now}))
	mounts := map[string]backend.Backend{task.Workspace: p.Workspace, task.Scratch: scratch, task.Memories: memories}
	for at, factory := range r.backends {
		dir := filepath.Join(p.State, "mounts", strings.ReplaceAll(strings.Trim(at, "/"), "/", "-"))
		made, err := factory(BackendSpec{Run: p.Task.Run, Agent: p.Snapshot.Agent, Dir: dir})
		if err != nil {
			return places{}, misconfigured("Making the files below %s: %w", at, err)
		}
		mounts[path.Clean(at)] = made
	}
	list := []composite.Mount{{Path: task.Results, Backend: results, ReadOnly: true}}
	for at, b := range mounts {
		list = append(list, composite.Mount{Path: at, Backend: b})
	}
	all, err := composite.New(list...)
	if err != nil {
		return places{}, misconfigured("Putting the places for files together: %w", err)
	}
	return places{all: all, results: results, memories: mounts[task.Memories]}, nil
}

// whatFor says what our places are for.
var whatFor = map[string]string{
	task.Workspace: "the files of the work; relative paths begin here",
	task.Scratch:   "your own scratch files, gone when the work ends",
	task.Results:   "results that were too large to show, read-only",
	task.Memories:  "notes to keep; the tool recall searches them, where you have it",
}

// described tells an agent with file tools what it sees; another nothing.
func (p places) described(agent task.Agent) string {
	if !slices.ContainsFunc(agent.Tools, func(t task.Tool) bool { return t.Builtin == "Files" }) {
		return ""
	}
	commands := slices.ContainsFunc(agent.Tools, func(t task.Tool) bool {
		return t.Builtin == builtinShell || t.Builtin == builtinPython
	})
	lines := []string{"Places for files:"}
	for _, at := range p.all.Places() {
		line := "- " + at
		if words, ok := whatFor[at]; ok {
			line += ": " + words
		}
		if at == task.Scratch && commands {
			line += "; commands have another " + at
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// kept is a directory of the session's own beside the journal, or, where there
// is none, files that are gone with the process.
func (p Parts) kept(name string) (backend.Backend, error) {
	if p.State == "" {
		return state.New(state.Options{Now: p.Now}), nil
	}
	dir := filepath.Join(p.State, name)
	if err := os.MkdirAll(dir, 0o770); err != nil {
		return nil, fmt.Errorf("making the directory of %s: %w", name, err)
	}
	return state.Open(dir, state.Options{Now: p.Now})
}
