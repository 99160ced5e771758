package files

import (
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"sync"

	"github.com/deckhand-dev/deckhand/runner/backend"
)

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
