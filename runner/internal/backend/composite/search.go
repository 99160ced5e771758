package composite

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/internal/backend/text"
)

// A part is what one mount has to do with a search.
type part struct {
	mount *Mount
	dir   string // where to look in the mount
	globs []string
	// spot is set for the mount that has the place where the search starts.
	spot *spot
}

// parts splits a search among the mounts that it reaches.
func (c *Composite) parts(ctx context.Context, glob, dir string) ([]part, error) {
	if _, err := text.CompileGlob(glob); err != nil {
		return nil, err
	}
	s, err := c.find(ctx, dir)
	if err != nil {
		return nil, err
	}
	var parts []part
	if s.mount != nil {
		parts = append(parts, part{mount: s.mount, dir: s.rest, globs: []string{glob}, spot: &s})
	}
	for i := range c.mounts {
		m := &c.mounts[i]
		rest, ok := within(s.name, m.at())
		if !ok || rest == "." {
			continue
		}
		globs, err := below(glob, rest)
		if err != nil {
			return nil, err
		}
		if len(globs) > 0 {
			parts = append(parts, part{mount: m, dir: ".", globs: globs})
		}
	}
	return parts, nil
}

// A search is what a search was asked for, for its errors.
type search struct{ op, dir string }

// each runs ask for every pattern of every part, side by side, and joins what
// goes wrong.
func (s search) each(parts []part, ask func(p part, glob string) error) error {
	var all sync.WaitGroup
	errs := make([][]error, len(parts))
	for i, p := range parts {
		all.Go(func() {
			for _, glob := range p.globs {
				if err := s.failed(p, ask(p, glob)); err != nil {
					errs[i] = append(errs[i], err)
				}
			}
		})
	}
	all.Wait()
	if joined := slices.Concat(errs...); len(joined) != 1 {
		return errors.Join(joined...)
	}
	return slices.Concat(errs...)[0]
}

// failed makes the error of a part. Of a mount that nobody named it says which
// one it is.
func (s search) failed(p part, err error) error {
	switch {
	case err == nil:
		return nil
	case p.spot == nil:
		return failed(s.op, p.mount.Path, err)
	case p.spot.unless(err) == nil:
		return nil
	}
	return failed(s.op, s.dir, err)
}

// hidden reports whether what a mount has at a path is hidden by another mount.
func (c *Composite) hidden(m *Mount, name string) bool {
	for i := range c.mounts {
		if _, ok := within(c.mounts[i].at(), name); ok {
			return &c.mounts[i] != m
		}
	}
	return false
}

// Glob implements [backend.Backend].
func (c *Composite) Glob(ctx context.Context, pattern, dir string, skip func(backend.Info) bool) (backend.Found, error) {
	parts, err := c.parts(ctx, pattern, dir)
	if err != nil {
		return backend.Found{}, failed("glob", dir, err)
	}
	var (
		mu  sync.Mutex
		all backend.Found
	)
	err = search{"glob", dir}.each(parts, func(p part, glob string) error {
		found, err := p.mount.Backend.Glob(ctx, glob, p.dir, c.skipInfo(p.mount, skip))
		mu.Lock()
		defer mu.Unlock()
		all.Truncated = all.Truncated || found.Truncated
		for _, info := range found.Items {
			info.Path = p.mount.outer(info.Path)
			all.Items = append(all.Items, info)
		}
		return err
	})
	if err != nil {
		return backend.Found{}, err
	}
	slices.SortFunc(all.Items, func(a, b backend.Info) int { return backend.Compare(a.Path, b.Path) })
	// Two patterns of one mount may find the same file.
	all.Items = slices.CompactFunc(all.Items, func(a, b backend.Info) bool { return a.Path == b.Path })
	if len(all.Items) > backend.MaxFound {
		all.Items, all.Truncated = all.Items[:backend.MaxFound], true
	}
	return all, nil
}

// Grep implements [backend.Backend].
func (c *Composite) Grep(ctx context.Context, q backend.Query) (backend.Matches, error) {
	if _, err := text.CompileQuery(q); err != nil {
		return backend.Matches{}, failed("grep", q.Dir, err)
	}
	parts, err := c.parts(ctx, q.Glob, q.Dir)
	if err != nil {
		return backend.Matches{}, failed("grep", q.Dir, err)
	}
	if q.Limit < 1 || q.Limit > backend.MaxMatches {
		q.Limit = backend.MaxMatches
	}
	var (
		mu  sync.Mutex
		all backend.Matches
	)
	err = search{"grep", q.Dir}.each(parts, func(p part, glob string) error {
		inner := q
		inner.Dir, inner.Glob = p.dir, glob
		inner.Skip = c.skip(p.mount, q.Skip)
		found, err := p.mount.Backend.Grep(ctx, inner)
		mu.Lock()
		defer mu.Unlock()
		all.Truncated = all.Truncated || found.Truncated
		for _, m := range found.Items {
			m.Path = p.mount.outer(m.Path)
			if !c.hidden(p.mount, m.Path) {
				all.Items = append(all.Items, m)
			}
		}
		return err
	})
	if err != nil {
		return backend.Matches{}, err
	}
	return first(all, q.Limit), nil
}

// skip is asked of a file by its path in a mount. One that another mount hides
// is left out without a question.
func (c *Composite) skip(m *Mount, skip func(string) bool) func(string) bool {
	if skip == nil {
		return nil
	}
	return func(name string) bool {
		outer := m.outer(name)
		return c.hidden(m, outer) || skip(outer)
	}
}

// skipInfo is skip for Glob. It leaves out hidden files also if skip is nil: they
// would count towards the bound of the mount.
func (c *Composite) skipInfo(m *Mount, skip func(backend.Info) bool) func(backend.Info) bool {
	return func(info backend.Info) bool {
		info.Path = m.outer(info.Path)
		return c.hidden(m, info.Path) || skip != nil && skip(info)
	}
}

// first puts matches in order and keeps as many as were asked for.
func first(all backend.Matches, limit int) backend.Matches {
	slices.SortFunc(all.Items, func(a, b backend.Match) int {
		return cmp.Or(backend.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line))
	})
	all.Items = slices.Compact(all.Items)
	if len(all.Items) > limit {
		all.Items, all.Truncated = all.Items[:limit], true
	}
	return all
}
