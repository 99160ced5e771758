package config

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/backend/state"
	"github.com/deckhand-dev/deckhand/runner/internal/agentsmd"
	"github.com/deckhand-dev/deckhand/runner/internal/backend/composite"
	"github.com/deckhand-dev/deckhand/runner/internal/engine"
	"github.com/deckhand-dev/deckhand/runner/internal/offload"
	"github.com/deckhand-dev/deckhand/runner/internal/place"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/files"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/recall"
	"github.com/deckhand-dev/deckhand/runner/registry"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// places are what the file tools see of a Run, put together.
type places struct {
	files    *backend.Backend // all of them
	paths    []string         // sorted
	results  *backend.Backend // what the model may only read
	memories *backend.Backend
	// lost is what an earlier attempt had and this one has not.
	lost []string
}

// placesOf mounts the workspace, what the session keeps beside it, and what a
// runner was built with.
func (r *Registry) placesOf(ctx context.Context, p Parts, o *opened) (places, error) {
	lost := p.lost("memories")
	scratch, err := p.kept("tmp")
	if err != nil {
		return places{}, err
	}
	results, err := p.kept("results")
	if err != nil {
		return places{}, err
	}
	memories, err := p.kept("memories")
	if err != nil {
		return places{}, err
	}
	mounts := map[string]backend.Driver{task.Workspace: p.Workspace, task.Scratch: scratch, task.Memories: memories}
	for at, factory := range r.backends {
		dir := filepath.Join(p.State, "mounts", strings.ReplaceAll(strings.Trim(at, "/"), "/", "-"))
		made, err := call(ctx, factory, registry.BackendSpec{Run: p.Task.Run, Agent: p.Snapshot.Agent, Dir: dir})
		if err != nil {
			return places{}, misconfigured("Making the files below %s: %w", at, err)
		}
		o.add("the files below "+at, made)
		mounts[at] = made
	}
	list := []composite.Mount{{Path: task.Results, Driver: results, ReadOnly: true}}
	for at, d := range mounts {
		list = append(list, composite.Mount{Path: at, Driver: d})
	}
	all, err := composite.New(list...)
	if err != nil {
		return places{}, misconfigured("Putting the places for files together: %w", err)
	}
	made := places{
		files: backend.New(all, p.Now), paths: all.Places(),
		results: backend.New(results, p.Now), memories: backend.New(mounts[task.Memories], p.Now),
	}
	if lost && mounts[task.Memories] == memories { // a custom runner's own are not in the state directory
		made.lost = append(made.lost, task.Memories)
	}
	return made, nil
}

// whatFor says what our places are for.
var whatFor = map[string]string{
	task.Workspace: "the files of the work; relative paths begin here",
	task.Scratch:   "your own scratch files, gone when the work ends",
	task.Results:   "results that were too large to show, read-only",
	task.Memories:  "notes to keep; the tool Recall searches them, where you have it",
}

// described tells an agent with file tools what it sees; another nothing.
func (p places) described(agent task.Agent) string {
	if !slices.ContainsFunc(agent.Tools, func(t task.Tool) bool { return t.Builtin == task.BuiltinFiles }) {
		return ""
	}
	commands := slices.ContainsFunc(agent.Tools, func(t task.Tool) bool {
		return task.Builtins[t.Builtin].Sandbox
	})
	lines := []string{"Places for files:"}
	for _, at := range p.paths {
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

// missing tells an agent that sees the workspace what is not in it.
func (p Parts) missing(agent task.Agent) string {
	sees := slices.ContainsFunc(agent.Tools, func(t task.Tool) bool {
		return t.Builtin == task.BuiltinFiles || task.Builtins[t.Builtin].Sandbox
	})
	if len(p.Missing) == 0 || !sees {
		return ""
	}
	return "Not everything in the repository is in " + task.Workspace + ":\n- " + strings.Join(p.Missing, "\n- ") +
		"\nDo not rely on what is missing, and say so where it matters. Changes to files of Git LFS and below submodules are not published."
}

// lost reports whether an earlier attempt of the session kept its files without a
// directory of that name: an earlier version had it in memory, or it was removed.
func (p Parts) lost(name string) bool {
	if p.State == "" {
		return false
	}
	_, err := os.Stat(filepath.Join(p.State, "results"))
	_, gone := os.Stat(filepath.Join(p.State, name))
	return err == nil && errors.Is(gone, fs.ErrNotExist)
}

// kept is a directory of the session's own beside the journal, or, where there
// is none, files that are gone with the process.
func (p Parts) kept(name string) (backend.Driver, error) {
	if p.State == "" {
		return state.New(state.Options{Now: p.Now}), nil
	}
	dir := filepath.Join(p.State, name)
	if err := os.MkdirAll(dir, 0o770); err != nil {
		return nil, fmt.Errorf("making the directory of %s: %w", name, err)
	}
	return state.Open(dir, state.Options{Now: p.Now})
}

// pagers are the tools that bound their results themselves. What reads parts of
// files must be able to read parts of what was put aside.
var pagers = []string{files.NameRead, files.NameLs, files.NameGlob, files.NameGrep, files.NameEdit, files.NameWrite}

const (
	bytesPerToken = 4
	leastEvicted  = 4 << 10 // what a preview may have itself
)

// offloader puts large results where the model may read them in parts. Large is
// what has more than an eighth of the smallest window: the last few results of
// a session are never hidden, and must fit.
func (b *builder) offloader() func(ctx context.Context, call step.Call, text string) string {
	bytes := int64(offload.DefaultBytes)
	for _, t := range b.models.targets {
		if t.Window > 0 {
			bytes = min(bytes, max(t.Window/8*bytesPerToken, leastEvicted))
		}
	}
	recalls := task.ToolName(recall.Name, b.Snapshot.Version)
	e := offload.New(offload.ToBackend(b.places.results), offload.Options{
		Bytes:  int(bytes),
		Exempt: func(tool string) bool { return slices.Contains(pagers, tool) || tool == recalls },
	})
	return e.Text
}

// promptBuilder returns the function that adds the AGENTS.md of the workspace to the prompt of the Run's own
// session, if the policy lets the agent read it. A Run does not fail for want of
// that file: the log says why it is left out.
func (b *builder) promptBuilder() func(ctx context.Context, prompt string, allows engine.Allows) string {
	if b.Snapshot.Agent.IgnoreInstructions {
		return nil
	}
	return func(ctx context.Context, prompt string, allows engine.Allows) string {
		ctx = context.WithoutCancel(ctx) // a session opens once: a resumed one would not have it
		text, err := agentsmd.Read(ctx, b.places.files, task.Workspace[1:], func(at string) bool {
			args, err := json.Marshal(map[string]string{"path": "/" + at})
			return err == nil && allows(ctx, files.NameRead, args)
		})
		if err != nil {
			b.logLeftOut(err)
			return prompt
		}
		return agentsmd.Attach(prompt, text)
	}
}

// logLeftOut logs why the agent is not shown the AGENTS.md of the workspace.
func (b *builder) logLeftOut(err error) {
	if b.Log == nil {
		return
	}
	why := err.Error() + ". Correct the file"
	if denied, is := errors.AsType[*agentsmd.NotAllowedError](err); is {
		why = fmt.Sprintf("its policy does not allow Read of /%s. Allow Read of this file", denied.Path)
	}
	if b.Place != place.Program { // which has no such field
		why += ", or set workspace.agentsFile to Ignore"
	}
	b.Log(agentsmd.Name + " of the workspace is not shown to the agent: " + why + ".")
}

// loadFile reads an image or a document below the workspace that a user shows the agent, if the
// policy lets the agent read it.
func (b *builder) loadFile(ctx context.Context, name string, allows engine.Allows) (tool.File, error) {
	args, err := b.files.Canonical(ctx, path.Join(task.Workspace, name))
	if err != nil {
		return tool.File{}, err
	}
	if !allows(ctx, files.NameRead, args) {
		return tool.File{}, errors.New("the policy of the Agent does not allow Read of it. Allow it there, or name another file")
	}
	return b.files.ShowArgs(ctx, args)
}
