package store

import (
	"bytes"
	"context"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/internal/backend/text"
)

// List implements [backend.Backend].
func (s *Store) List(ctx context.Context, dir string) ([]backend.Info, error) {
	infos, err := s.list(ctx, dir)
	if err != nil {
		return nil, failed("list", dir, err)
	}
	return infos, nil
}

func (s *Store) list(ctx context.Context, dir string) ([]backend.Info, error) {
	dir, err := clean(dir)
	if err != nil {
		return nil, err
	}
	entries, err := s.below(ctx, dir)
	if err != nil {
		return nil, err
	}
	byName := map[string]backend.Info{}
	for _, e := range entries {
		name, _, deeper := strings.Cut(relative(dir, e.Key), "/")
		info := describe(e)
		if deeper {
			info = backend.Info{Path: path.Join(dir, name), Dir: true, ModTime: e.ModTime}
		}
		old, known := byName[name]
		switch {
		case !known, old.Dir && !deeper: // a file goes before a directory of its name
			byName[name] = info
		case old.Dir && deeper && old.ModTime.Before(e.ModTime):
			byName[name] = info
		}
	}
	infos := make([]backend.Info, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		infos = append(infos, byName[name])
	}
	return infos, nil
}

func describe(e Entry) backend.Info {
	return backend.Info{Path: e.Key, Size: e.Size, ModTime: e.ModTime}
}

// relative returns a key below dir without it.
func relative(dir, key string) string {
	if dir == "." {
		return key
	}
	return strings.TrimPrefix(key, dir+"/")
}

// Read implements [backend.Backend]. Files are small: it holds the whole.
func (s *Store) Read(ctx context.Context, name string, w backend.Window) (backend.Page, error) {
	page, err := s.read(ctx, name, w)
	if err != nil {
		return backend.Page{}, failed("read", name, err)
	}
	return page, nil
}

func (s *Store) read(ctx context.Context, name string, w backend.Window) (backend.Page, error) {
	key, err := clean(name)
	if err != nil {
		return backend.Page{}, err
	}
	release, err := s.hold(ctx, s.file+text.PageMemory)
	if err != nil {
		return backend.Page{}, err
	}
	defer release()
	v, err := s.get(ctx, key)
	if err != nil {
		return backend.Page{}, err
	}
	return text.Page(bytes.NewReader(v.Data), w)
}
