package disk

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/internal/backend/text"
)

// Errors that end a walk early; they never leave this package.
var (
	errFull = errors.New("the limit is reached")
	errLate = errors.New("the time is up")
)

// A walk goes through the files below a directory in the order of
// [backend.Compare]. It opens each by its path from the root: os.Root.OpenRoot,
// which would spare the way there, waits on a pipe that is swapped in for a
// directory.
type walk struct {
	disk  *Disk
	ctx   context.Context
	until time.Time
	// visit is called for each regular file and each link.
	visit func(name string, e fs.DirEntry) error
}

// start walks from a directory. Only there does an error count: below, what
// cannot be read or has gone is passed over.
func (w *walk) start(dir string) (truncated bool, err error) {
	entries, err := w.disk.readDir(dir)
	if err != nil {
		return false, err
	}
	err = w.in(dir, entries)
	if errors.Is(err, errFull) || errors.Is(err, errLate) {
		return true, nil
	}
	return false, err
}

func (w *walk) in(dir string, entries []fs.DirEntry) error {
	for _, e := range entries {
		if err := w.pause(); err != nil {
			return err
		}
		name := path.Join(dir, e.Name())
		if temporary(name) {
			continue
		}
		if err := w.enter(name, e); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) enter(name string, e fs.DirEntry) error {
	switch {
	case e.Type().IsRegular(), e.Type()&fs.ModeSymlink != 0:
		return w.visit(name, e)
	case e.IsDir() && e.Name() != ".git":
		if entries, err := w.disk.readDir(name); err == nil {
			return w.in(name, entries)
		}
		// Unreadable or gone: not what was asked for.
	}
	return nil
}

func (w *walk) pause() error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if w.disk.now().After(w.until) {
		return errLate
	}
	return nil
}

// Glob implements [backend.Backend].
func (d *Disk) Glob(ctx context.Context, pattern, dir string, skip func(backend.Info) bool) (backend.Found, error) {
	found, err := d.glob(ctx, pattern, dir, skip)
	if err != nil {
		return backend.Found{}, d.failed("glob", dir, err)
	}
	return found, nil
}

func (d *Disk) glob(ctx context.Context, pattern, dir string, skip func(backend.Info) bool) (backend.Found, error) {
	g, start, err := d.begin(pattern, dir)
	if err != nil || start == "" {
		return backend.Found{}, err
	}
	var found backend.Found
	w := walk{disk: d, ctx: ctx, until: d.now().Add(backend.GlobTimeout)}
	w.visit = func(name string, e fs.DirEntry) error {
		if !g.Match(below(dir, name)) {
			return nil
		}
		info, ok := d.file(name, e)
		if !ok {
			return nil
		}
		item := describe(name, info)
		item.Link = e.Type()&fs.ModeSymlink != 0
		if skip != nil && skip(item) {
			return nil
		}
		if len(found.Items) == backend.MaxFound {
			return errFull
		}
		found.Items = append(found.Items, item)
		return nil
	}
	found.Truncated, err = w.start(start)
	return found, err
}

// file returns the regular file that an entry is or leads to, unless it is gone
// or we do not follow there.
func (d *Disk) file(name string, e fs.DirEntry) (fs.FileInfo, bool) {
	info, err := d.lstat(name)
	if err == nil && e.Type()&fs.ModeSymlink != 0 {
		info, err = d.root.Stat(name)
	}
	return info, err == nil && info.Mode().IsRegular()
}

// begin compiles a pattern and returns the directory from which everything that
// it matches is reached, or none when it can match nothing.
func (d *Disk) begin(pattern, dir string) (*text.Glob, string, error) {
	g, err := text.CompileGlob(pattern)
	if err != nil {
		return nil, "", err
	}
	dir, err = clean(dir)
	if err != nil {
		return nil, "", err
	}
	info, err := d.lstat(dir)
	if err == nil {
		err = directory(info)
	}
	if err != nil {
		return nil, "", err
	}
	start := path.Join(dir, g.Start())
	if !d.isDir(start) || hidden(start) {
		start = ""
	}
	return g, start, nil
}

func (d *Disk) isDir(name string) bool {
	info, err := d.lstat(name)
	return err == nil && info.IsDir()
}

// below returns name relative to dir.
func below(dir, name string) string {
	if dir = path.Clean(dir); dir == "." {
		return name
	}
	return strings.TrimPrefix(name, dir+"/")
}

// Grep implements [backend.Backend].
func (d *Disk) Grep(ctx context.Context, q backend.Query) (backend.Matches, error) {
	matches, err := d.grep(ctx, q)
	if err != nil {
		return backend.Matches{}, d.failed("grep", q.Dir, err)
	}
	return matches, nil
}

func (d *Disk) grep(ctx context.Context, q backend.Query) (backend.Matches, error) {
	in, err := text.NewSearch(q)
	if err != nil {
		return backend.Matches{}, err
	}
	dir, err := clean(q.Dir)
	if err != nil {
		return backend.Matches{}, err
	}
	s := search{in}
	if info, err := d.lstat(dir); err == nil && !info.IsDir() {
		if s.Skips(dir) {
			return backend.Matches{}, nil
		}
		return s.one(ctx, d, dir)
	}
	g, start, err := d.begin(q.Glob, dir)
	if err != nil || start == "" {
		return backend.Matches{}, err
	}
	w := walk{disk: d, ctx: ctx, until: d.now().Add(backend.GrepTimeout)}
	w.visit = func(name string, e fs.DirEntry) error {
		// The target of a link inside the tree is found under its own name.
		if !e.Type().IsRegular() || !g.Match(below(dir, name)) || s.Skips(name) {
			return nil
		}
		return s.in(ctx, d, name)
	}
	s.Found.Truncated, err = w.start(start)
	return s.Found, err
}

// A search looks into one file after the other.
type search struct{ text.Search }

// one searches a single file that was asked for by name, so that what would be
// passed over in a tree is an error here.
func (s *search) one(ctx context.Context, d *Disk, name string) (backend.Matches, error) {
	f, info, err := d.open(name)
	if err != nil {
		return backend.Matches{}, err
	}
	defer f.Close()
	if err := within(info, backend.MaxSearch); err != nil {
		return backend.Matches{}, err
	}
	room, err := s.In(ctx, name, bounded(ctx, f, backend.MaxSearch), info.Size())
	s.Found.Truncated = room == text.Full
	return s.Found, err
}

// in searches a file of a tree; one that is binary, too large, unreadable or
// gone is passed over.
func (s *search) in(ctx context.Context, d *Disk, name string) error {
	f, info, err := d.openNow(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	if info.Size() > backend.MaxSearch {
		return nil
	}
	room, err := s.In(ctx, name, bounded(ctx, f, backend.MaxSearch), info.Size())
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil && room == text.Full:
		return errFull
	}
	return nil
}
