// Package files is the tools that work on files: Read, Write, Edit, Ls, Glob and Grep, over one backend, which the
// model sees under a root such as "/workspace", or as several mounted directories.
//
// The backend's errors are typed; only words.go turns them into text for the model. The page beside a tool describes it
// to the model (read.md for read.go).
//
// A session changes only files that it has read: Edit requires a Read of the file, and so does a Write to an existing
// file, unless it would change nothing. Both are refused if the content has changed since. Writing and editing count as
// reading. A removed file can be written again without reading it.
//
// Write and Edit preserve what Read does not show: a byte order mark, CRLF line ends and bytes that are not UTF-8.
// Write cannot keep such bytes, so it refuses.
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

// Over makes the tools over a backend, with the names of a view.
func Over(b *backend.Backend, v View) *Toolset {
	v = v.clean()
	return &Toolset{backend: b, view: v, states: newReadStates(), changes: &changes{view: v, paths: map[string]bool{}}}
}

// ForSession returns the same tools for another session, such as the session of a sub-agent. It has read nothing yet,
// and its changes are counted with the changes of this session.
func (t *Toolset) ForSession() *Toolset {
	return &Toolset{backend: t.backend, view: t.view, states: newReadStates(), changes: t.changes}
}

// Tools returns the tools.
func (t *Toolset) Tools() []tool.Tool {
	return []tool.Tool{t.edit(), t.glob(), t.grep(), t.ls(), t.readFile(), t.write()}
}

// Replay records a call that succeeded in an earlier attempt of the session: files that it read need not be read again,
// and files that it changed are counted. Calls of other tools are ignored.
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

// Changed returns the files below the view's Home that were created or changed through the tools and still exist, with
// the names that the model uses, in the order of [backend.Compare].
func (t *Toolset) Changed(ctx context.Context) ([]backend.Info, error) {
	return t.changes.list(ctx, t.backend)
}

// reading returns the Spec of a tool that only reads.
func reading(name, page string) tool.Spec {
	return tool.Spec{
		Name: name, Description: strings.TrimSpace(page),
		Effect: tool.ReadOnly, Concurrency: tool.Parallel,
	}
}

// changing returns the Spec of a tool that changes the file at its path.
func changing(name, page string, effect tool.Effect) tool.Spec {
	return tool.Spec{
		Name: name, Description: strings.TrimSpace(page),
		Effect: effect, Concurrency: tool.PerPath,
	}
}

// readStates are what a session has read of files, by path of the backend.
type readStates struct {
	mu     sync.Mutex
	byPath map[string]*readState
}

func newReadStates() *readStates { return &readStates{byPath: map[string]*readState{}} }

// A readState is what a session has read of one file. It is locked while the file is read or changed, so that its
// version belongs to the last access.
type readState struct {
	sync.Mutex
	read    bool
	version backend.Version // Any: whatever the file is now counts as read
}

// lock locks and returns the readState of a file.
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

// set records the version that the session has read.
func (s *readState) set(v backend.Version) { s.read, s.version = true, v }

// forget records that the file does not exist any more.
func (s *readState) forget() { s.read, s.version = false, backend.Any }

// changes are the files that a session and its child sessions wrote, below the Home of their view.
type changes struct {
	view View

	mu    sync.Mutex
	paths map[string]bool // of the backend
}

// add records a file as changed.
func (c *changes) add(at string) {
	if !within(c.view.Home, c.view.name(at)) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.paths[at] = true
}

// list returns the files that still exist, with the names that the model uses, in the order of [backend.Compare].
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

// existing returns the files of one directory that still exist.
func existing(ctx context.Context, b *backend.Backend, dir string, paths []string) ([]backend.Info, error) {
	infos, err := b.List(ctx, dir)
	if errors.Is(err, backend.ErrNotFound) || errors.Is(err, backend.ErrNotDir) {
		return nil, nil // removed since, by a shell
	}
	return slices.DeleteFunc(infos, func(i backend.Info) bool { return i.Dir || !slices.Contains(paths, i.Path) }), err
}
