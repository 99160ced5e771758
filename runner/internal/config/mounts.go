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
	"github.com/deckhand-dev/deckhand/runner/internal/journal"
	"github.com/deckhand-dev/deckhand/runner/internal/offload"
	"github.com/deckhand-dev/deckhand/runner/internal/place"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/files"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/recall"
	"github.com/deckhand-dev/deckhand/runner/registry"
	"github.com/deckhand-dev/deckhand/runner/step"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// places are the mounted directories of a Run.
type places struct {
	files    *backend.Backend // all of them
	paths    []string         // sorted
	results  *backend.Backend // what the model may only read
	memories *backend.Backend
	// lost are the directories that an earlier attempt had and this one does not have.
	lost []string
}

// placesOf mounts the workspace, the session's own directories, and those of a custom runner.
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
	if p.Skills != nil {
		list = append(list, composite.Mount{Path: task.SkillsDir, Driver: p.Skills, ReadOnly: true})
	}
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

// whatFor describes the purpose of the built-in places.
var whatFor = map[string]string{
	task.Workspace: "the files of the work; relative paths begin here",
	task.Scratch:   "your own scratch files, gone when the work ends",
	task.Results:   "results that were too large to show, read-only",
	task.SkillsDir: "skills, read-only",
	task.Memories:  "notes to keep; the tool Recall searches them, where you have it",
}

// described describes the places to an agent with file tools. For other agents it is empty.
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

// missing describes to an agent with file tools what the workspace lacks.
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

// sessionFolders are the folders of a state directory with files of the session. The first ones are taken over also by a
// Run that does not take over the workspace: what the session refers to, and notes.
var sessionFolders = []string{"results", "memories", "attachments", "tmp", "mounts", "commands", "hands"}

const foldersOfFresh = 3

// SessionFolders returns the folders of the state directory of another Run that a Run takes over.
func SessionFolders(c task.Continue) []string {
	if c.Workspace == task.ContinueFresh {
		return sessionFolders[:foldersOfFresh]
	}
	return sessionFolders
}

// TakeFiles moves the files of a session into the state directory of a Run, dir, from the state directory of the Run that it
// continues, or of one before. What is there stays, so that it can be done again after a crash.
func TakeFiles(dir string) error {
	for from := journal.SourceDir(dir); ; from = journal.SourceDir(from) {
		if _, err := os.Lstat(from); err != nil {
			return nil //nolint:nilerr // the first Run of the chain
		}
		for _, name := range sessionFolders {
			if err := moveNew(filepath.Join(from, name), filepath.Join(dir, name)); err != nil {
				return fmt.Errorf("taking over the files of the Run before: %w", err)
			}
		}
	}
}

// moveNew moves a directory, if there is one and none has the new name.
func moveNew(old, now string) error {
	if _, err := os.Lstat(now); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(old, now); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// lost reports whether an earlier attempt of the session had no directory of that name: an earlier version kept it in
// memory, or it was removed.
func (p Parts) lost(name string) bool {
	if p.State == "" {
		return false
	}
	_, err := os.Stat(filepath.Join(p.State, "results"))
	_, gone := os.Stat(filepath.Join(p.State, name))
	return err == nil && errors.Is(gone, fs.ErrNotExist)
}

// kept returns the driver of one of the session's own directories beside the journal or, without a state directory, in
// memory.
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

// pagers are the tools that bound their results themselves. Their results are never offloaded, because they read parts
// of offloaded results.
var pagers = []string{files.NameRead, files.NameLs, files.NameGlob, files.NameGrep, files.NameEdit, files.NameWrite}

const (
	bytesPerToken = 4
	leastEvicted  = 4 << 10 // what a preview may have itself
)

// offloader returns the function that stores large results in files, which the model can read in parts. A result is
// large if it takes more than an eighth of the smallest window: compaction never hides the last results of a session,
// so several of them must fit.
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

// promptBuilder returns the function that adds the AGENTS.md of the workspace to the prompt of the Run's own session,
// if the policy lets the agent read it. If the file cannot be read, the Run continues without it, and the log has the
// cause.
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

// logLeftOut logs why the AGENTS.md of the workspace is left out.
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

// loadFile reads an image or a document of the workspace that a user attached, if the policy lets the agent read it.
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
