package files

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// The names of the tools.
const (
	NameRead  = "Read"
	NameWrite = "Write"
	NameEdit  = "Edit"
	NameLs    = "Ls"
	NameGlob  = "Glob"
	NameGrep  = "Grep"
)

// A Toolset is the file tools of one session.
type Toolset struct {
	backend *backend.Backend
	view    View
	states  *readStates
	changes *changes
}

// Over makes the tools over a backend, of which the model sees what the view says.
func Over(b *backend.Backend, v View) *Toolset {
	v = v.clean()
	return &Toolset{backend: b, view: v, states: newReadStates(), changes: &changes{view: v, paths: map[string]bool{}}}
}

// ForSession returns the same tools for another session, such as that of a
// sub-agent: what it has read is its own, what it changes is counted with ours.
func (t *Toolset) ForSession() *Toolset {
	return &Toolset{backend: t.backend, view: t.view, states: newReadStates(), changes: t.changes}
}

// Tools returns the tools.
func (t *Toolset) Tools() []tool.Tool {
	return []tool.Tool{t.edit(), t.glob(), t.grep(), t.ls(), t.readFile(), t.write()}
}

// Replay tells the tools of a call that succeeded in an earlier attempt of the
// session, so that files read then need not be read again and files changed
// then are counted. Calls of other tools are ignored.
func (t *Toolset) Replay(name string, args json.RawMessage) {
	if name != NameRead && name != NameWrite && name != NameEdit {
		return
	}
	var named struct {
		Path string `json:"path"`
	}
	if json.Unmarshal(args, &named) != nil {
		return
	}
	at, err := t.view.resolve(named.Path)
	if err != nil {
		return
	}
	s := t.states.lock(at)
	defer s.Unlock()
	s.set(backend.Any)
	if name != NameRead {
		t.changes.add(at)
	}
}

// Changed returns the files below the view's Home that were made or changed through the tools and
// still exist, by the names that the model knows, in the order of
// [backend.Compare].
func (t *Toolset) Changed(ctx context.Context) ([]backend.Info, error) {
	return t.changes.list(ctx, t.backend)
}

// reading is the Spec of a tool that only looks.
func reading(name, page string) tool.Spec {
	return tool.Spec{
		Name: name, Description: strings.TrimSpace(page),
		Effect: tool.ReadOnly, Concurrency: tool.Parallel,
	}
}

// changing is the Spec of a tool that changes the file at its path.
func changing(name, page string, effect tool.Effect) tool.Spec {
	return tool.Spec{
		Name: name, Description: strings.TrimSpace(page),
		Effect: effect, Concurrency: tool.PerPath,
	}
}

// readStates are what a session knows of files, by path of the backend.
type readStates struct {
	mu     sync.Mutex
	byPath map[string]*readState
}

func newReadStates() *readStates { return &readStates{byPath: map[string]*readState{}} }

// A readState is what a session knows of one file. It is locked while the file is
// read or changed, so that what is known is what was last seen.
type readState struct {
	sync.Mutex
	read    bool
	version backend.Version // Any: whatever the file is now counts as read
}

// lock returns, locked, what the session knows of a file.
func (r *readStates) lock(at string) *readState {
	r.mu.Lock()
	s, ok := r.byPath[at]
	if !ok {
		s = &readState{}
		r.byPath[at] = s
	}
	r.mu.Unlock()
	s.Lock()
	return s
}

// set records the version that the session has seen.
func (s *readState) set(v backend.Version) { s.read, s.version = true, v }

// forget is for a file that is not there any more.
func (s *readState) forget() { s.read, s.version = false, backend.Any }

// changes are the files written by a session and those that it started, below the
// Home of their view.
type changes struct {
	view View

	mu    sync.Mutex
	paths map[string]bool // of the backend
}

// add counts a file as changed.
func (c *changes) add(at string) {
	if !within(c.view.Home, c.view.name(at)) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paths[at] = true
}

// list returns the files that still exist, by the names that the model knows, in the
// order of [backend.Compare].
func (c *changes) list(ctx context.Context, b *backend.Backend) ([]backend.Info, error) {
	c.mu.Lock()
	paths := slices.Collect(maps.Keys(c.paths))
	c.mu.Unlock()

	wanted := map[string][]string{} // by directory: each is listed once
	for _, p := range paths {
		wanted[path.Dir(p)] = append(wanted[path.Dir(p)], p)
	}
	var infos []backend.Info
	for dir, names := range wanted {
		found, err := existing(ctx, b, dir, names)
		if err != nil {
			return nil, err
		}
		for _, info := range found {
			info.Path = c.view.name(info.Path)
			infos = append(infos, info)
		}
	}
	slices.SortFunc(infos, func(a, b backend.Info) int { return backend.Compare(a.Path, b.Path) })
	return infos, nil
}

// existing returns those of the files of one directory that are there.
func existing(ctx context.Context, b *backend.Backend, dir string, paths []string) ([]backend.Info, error) {
	infos, err := b.List(ctx, dir)
	if errors.Is(err, backend.ErrNotFound) || errors.Is(err, backend.ErrNotDir) {
		return nil, nil // removed since, by a shell
	}
	return slices.DeleteFunc(infos, func(i backend.Info) bool { return i.Dir || !slices.Contains(paths, i.Path) }), err
}

// canonicalPath is the canonical form of the arguments of a tool that takes a
// path: absolute and clean, with the links resolved. A path that is left out is
// the view's Home.
func (t *Toolset) canonicalPath(ctx context.Context, args json.RawMessage) (json.RawMessage, *tool.Error) {
	var in struct {
		Path string `json:"path"`
	}
	if err := json.Unmarshal(args, &in); err != nil {
		return nil, &tool.Error{Message: err.Error()}
	}
	return t.set(ctx, args, in.Path, map[string]string{})
}

// canonicalGlob is canonicalPath for Glob. The directory at the start of its
// pattern is part of the path, so that rules see where it looks.
func (t *Toolset) canonicalGlob(ctx context.Context, args json.RawMessage) (json.RawMessage, *tool.Error) {
	var in globIn
	if err := json.Unmarshal(args, &in); err != nil {
		return nil, &tool.Error{Message: err.Error()}
	}
	dir, pattern, err := t.view.split(in.Path, in.Pattern)
	if err != nil {
		return nil, t.view.refused(in.Path, err)
	}
	return t.set(ctx, args, dir, map[string]string{"pattern": pattern})
}

// canonicalGrep is canonicalGlob for the glob of Grep, if it has one.
func (t *Toolset) canonicalGrep(ctx context.Context, args json.RawMessage) (json.RawMessage, *tool.Error) {
	var in grepIn
	if err := json.Unmarshal(args, &in); err != nil {
		return nil, &tool.Error{Message: err.Error()}
	}
	if in.Glob == "" {
		return t.set(ctx, args, in.Path, map[string]string{})
	}
	dir, glob, err := t.view.split(in.Path, in.Glob)
	if err != nil {
		return nil, t.view.refused(in.Path, err)
	}
	return t.set(ctx, args, dir, map[string]string{"glob": glob})
}

// set puts the canonical path and the rest into arguments.
func (t *Toolset) set(ctx context.Context, args json.RawMessage, name string, rest map[string]string) (json.RawMessage, *tool.Error) {
	canonical, err := t.canonical(ctx, name)
	if err != nil {
		return nil, t.view.refused(name, err)
	}
	rest["path"] = canonical
	return tool.SetArgs(args, rest), nil
}

// canonical is the one name of what a path leads to.
func (t *Toolset) canonical(ctx context.Context, name string) (string, error) {
	at, err := t.view.resolve(name)
	if err != nil {
		return "", err
	}
	resolved, err := t.backend.Resolve(ctx, at)
	if err != nil {
		return "", err
	}
	if !utf8.ValidString(resolved) { // a link leads there; arguments cannot name it
		return "", &backend.PathError{Op: "resolve", Path: name, Err: backend.ErrBadName}
	}
	return t.view.name(resolved), nil
}

// refused is why arguments have no canonical form.
func (v View) refused(name string, err error) *tool.Error {
	result, err := v.failed(name, err)
	if err != nil { // the context has ended
		return &tool.Error{Message: err.Error()}
	}
	return result.Error
}
