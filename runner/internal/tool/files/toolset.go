package files

import (
	"cmp"
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

// A View is how a model knows the files of a backend. Its paths are absolute
// and clean.
type View struct {
	// Root is what the model calls the root of the backend; empty: "/".
	Root string
	// Home is where relative paths begin, and where the work is: what is changed
	// elsewhere is not counted as changed. Empty: the Root.
	Home string
	// Places are what the model is told there is; empty: the Root alone.
	Places []string
}

func (v View) clean() View {
	v.Root = path.Clean("/" + v.Root)
	v.Home = path.Clean("/" + cmp.Or(v.Home, v.Root))
	if len(v.Places) == 0 {
		v.Places = []string{v.Root}
	}
	return v
}

// A Toolset is the file tools of one session.
type Toolset struct {
	backend *backend.Backend
	view    View
	changes *changes

	mu   sync.Mutex
	seen map[string]*sighting // by path of the backend
}

// A sighting is what a session knows of one file. It is locked while the file
// is looked at or changed, so that what is known is what was last seen.
type sighting struct {
	sync.Mutex
	read    bool
	version backend.Version // Any: whatever the file is now counts as read
}

func (s *sighting) saw(v backend.Version) { s.read, s.version = true, v }

// forget is for a file that is not there any more.
func (s *sighting) forget() { s.read, s.version = false, backend.Any }

// changes are the paths written by a session and those that it started.
type changes struct {
	mu    sync.Mutex
	paths map[string]bool
}

// Over makes the tools over a backend, of which the model sees what the view says.
func Over(b *backend.Backend, v View) *Toolset {
	return &Toolset{
		backend: b, view: v.clean(),
		changes: &changes{paths: map[string]bool{}},
		seen:    map[string]*sighting{},
	}
}

// ForSession returns the same tools for another session, such as that of a
// sub-agent: what it has read is its own, what it changes is counted with ours.
func (t *Toolset) ForSession() *Toolset {
	return &Toolset{backend: t.backend, view: t.view, changes: t.changes, seen: map[string]*sighting{}}
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
	at, err := t.resolve(named.Path)
	if err != nil {
		return
	}
	s := t.look(at)
	defer s.Unlock()
	s.saw(backend.Any)
	if name != NameRead {
		t.changed(at)
	}
}

// Changed returns the files below the view's Home that were made or changed through the tools and
// still exist, by the names that the model knows, in the order of
// [backend.Compare].
func (t *Toolset) Changed(ctx context.Context) ([]backend.Info, error) {
	t.changes.mu.Lock()
	paths := slices.Collect(maps.Keys(t.changes.paths))
	t.changes.mu.Unlock()

	wanted := map[string][]string{} // by directory: each is listed once
	for _, p := range paths {
		wanted[path.Dir(p)] = append(wanted[path.Dir(p)], p)
	}
	var infos []backend.Info
	for dir, names := range wanted {
		found, err := t.stat(ctx, dir, names)
		if err != nil {
			return nil, err
		}
		infos = append(infos, found...)
	}
	slices.SortFunc(infos, func(a, b backend.Info) int { return backend.Compare(a.Path, b.Path) })
	return infos, nil
}

// stat returns those of the files of one directory that are there.
func (t *Toolset) stat(ctx context.Context, dir string, paths []string) ([]backend.Info, error) {
	listed, err := t.backend.List(ctx, dir)
	if errors.Is(err, backend.ErrNotFound) || errors.Is(err, backend.ErrNotDir) {
		return nil, nil // removed since, by a shell
	}
	var infos []backend.Info
	for _, info := range listed {
		if !info.Dir && slices.Contains(paths, info.Path) {
			info.Path = t.name(info.Path)
			infos = append(infos, info)
		}
	}
	return infos, err
}

// changed counts a file as changed.
func (t *Toolset) changed(at string) {
	if !within(t.view.Home, t.name(at)) {
		return
	}
	t.changes.mu.Lock()
	defer t.changes.mu.Unlock()
	t.changes.paths[at] = true
}

// look returns, locked, what the session knows of a file.
func (t *Toolset) look(at string) *sighting {
	t.mu.Lock()
	s, ok := t.seen[at]
	if !ok {
		s = &sighting{}
		t.seen[at] = s
	}
	t.mu.Unlock()
	s.Lock()
	return s
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
