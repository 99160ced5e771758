package store

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/internal/backend/text"
)

// Glob implements [backend.Backend].
func (s *Store) Glob(ctx context.Context, pattern, dir string, skip func(backend.Info) bool) (backend.Found, error) {
	found, err := s.glob(ctx, pattern, dir, skip)
	if err != nil {
		return backend.Found{}, failed("glob", dir, err)
	}
	return found, nil
}

func (s *Store) glob(ctx context.Context, pattern, dir string, skip func(backend.Info) bool) (backend.Found, error) {
	files, err := s.matching(ctx, pattern, dir)
	if err != nil {
		return backend.Found{}, err
	}
	var found backend.Found
	for _, e := range files {
		info := describe(e)
		if skip != nil && skip(info) {
			continue
		}
		if found.Truncated = len(found.Items) == backend.MaxFound; found.Truncated {
			break
		}
		found.Items = append(found.Items, info)
	}
	return found, nil
}

// matching returns the files below a directory that match a pattern, in the
// order of [backend.Compare].
func (s *Store) matching(ctx context.Context, pattern, dir string) ([]Entry, error) {
	g, err := text.CompileGlob(pattern)
	if err != nil {
		return nil, err
	}
	dir, err = clean(dir)
	if err != nil {
		return nil, err
	}
	entries, err := s.below(ctx, dir)
	if err != nil {
		return nil, err
	}
	start := path.Join(dir, g.Start())
	entries = slices.DeleteFunc(entries, func(e Entry) bool {
		return !g.Match(relative(dir, e.Key)) || insideGit(relative(start, e.Key))
	})
	slices.SortFunc(entries, func(a, b Entry) int { return backend.Compare(a.Key, b.Key) })
	return entries, nil
}

// insideGit reports whether a path, from where a search begins, leads through a
// directory of git.
func insideGit(name string) bool {
	return strings.HasPrefix(name, ".git/") || strings.Contains(name, "/.git/")
}

// Grep implements [backend.Backend].
func (s *Store) Grep(ctx context.Context, q backend.Query) (backend.Matches, error) {
	matches, err := s.grep(ctx, q)
	if err != nil {
		return backend.Matches{}, failed("grep", q.Dir, err)
	}
	return matches, nil
}

func (s *Store) grep(ctx context.Context, q backend.Query) (backend.Matches, error) {
	search, err := text.NewSearch(q)
	if err != nil {
		return backend.Matches{}, err
	}
	if key, err := clean(q.Dir); err == nil && key != "." {
		found, err := s.one(ctx, search, key)
		if !errors.Is(err, ErrNoKey) {
			return found, err
		}
	}
	files, err := s.matching(ctx, q.Glob, q.Dir)
	if err != nil {
		return backend.Matches{}, err
	}
	err = s.through(ctx, files, &search)
	return search.Found, err
}

// one searches a single file that was asked for by name.
func (s *Store) one(ctx context.Context, search text.Search, key string) (backend.Matches, error) {
	release, err := s.hold(ctx, backend.MaxSearch)
	if err != nil {
		return backend.Matches{}, err
	}
	defer release()
	v, err := s.kv.Get(ctx, key)
	if err != nil || search.Skips(key) {
		return backend.Matches{}, err
	}
	if v.Size > backend.MaxSearch {
		return backend.Matches{}, &backend.TooLargeError{Size: v.Size, Limit: backend.MaxSearch}
	}
	room, err := search.InBytes(v.Key, v.Data)
	search.Found.Truncated = room == text.Full
	return search.Found, err
}

// through searches files one by one until there is enough, or the time is up.
func (s *Store) through(ctx context.Context, files []Entry, search *text.Search) error {
	until := s.now().Add(backend.GrepTimeout)
	for _, e := range files {
		switch {
		case s.late(until):
			search.Found.Truncated = true
			return nil
		case search.Skips(e.Key) || e.Size > backend.MaxSearch:
			continue
		}
		room, err := s.in(ctx, e, search)
		switch {
		case err != nil:
			return err
		case room == text.Full:
			search.Found.Truncated = true
			return nil
		}
	}
	return nil
}

// in searches one file; one that is binary, or gone since it was listed, is
// passed over.
func (s *Store) in(ctx context.Context, e Entry, search *text.Search) (text.Room, error) {
	release, err := s.hold(ctx, e.Size)
	if err != nil {
		return text.Left, err
	}
	defer release()
	v, err := s.kv.Get(ctx, e.Key)
	if errors.Is(err, ErrNoKey) {
		return text.Left, nil
	}
	if err != nil {
		return text.Left, err
	}
	room, err := search.InBytes(v.Key, v.Data)
	if errors.Is(err, backend.ErrBinary) {
		err = nil
	}
	return room, err
}

func (s *Store) late(until time.Time) bool { return s.now().After(until) }
