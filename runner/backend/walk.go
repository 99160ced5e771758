package backend

import (
	"cmp"
	"context"
	"errors"
	"path"
	"slices"
	"strings"
	"time"
)

// Errors that end a search early; they never leave this package.
var (
	errFull = errors.New("the limit is reached")
	errLate = errors.New("the time is up")
)

// truncated reports whether a search ended early because of a bound. Any other error is returned.
func truncated(err error) (bool, error) {
	if errors.Is(err, errFull) || errors.Is(err, errLate) {
		return true, nil
	}
	return false, err
}

// Glob finds files, ordered as Grep does and within the same tree. It leaves out
// the files for which skip returns true, before its bound; nil leaves out none.
func (b *Backend) Glob(ctx context.Context, pattern, dir string, skip func(Info) bool) (Found, error) {
	found, err := b.glob(ctx, pattern, dir, skip)
	if err != nil {
		return Found{}, failed("glob", dir, err)
	}
	return found, nil
}

func (b *Backend) glob(ctx context.Context, pattern, dir string, skip func(Info) bool) (Found, error) {
	g, err := compileGlob(pattern)
	if err != nil {
		return Found{}, err
	}
	dir, err = clean(ctx, dir)
	if err != nil {
		return Found{}, err
	}
	entries, err := b.start(ctx, g, dir)
	if err != nil {
		return Found{}, err
	}
	var found Found
	w := walk{backend: b, ctx: ctx, op: "glob", until: b.now().Add(GlobTimeout)}
	w.visit = func(e Info) error {
		switch {
		case !g.match(relative(dir, e.Path)), skip != nil && skip(e):
			return nil
		case len(found.Items) == MaxFound:
			return errFull
		}
		found.Items = append(found.Items, e)
		return nil
	}
	found.Truncated, err = truncated(w.run(entries))
	return found, err
}

// start returns the entries of the deepest directory that contains everything that a pattern can match below dir; none
// if it does not exist.
func (b *Backend) start(ctx context.Context, g *glob, dir string) ([]Info, error) {
	entries, err := b.driver.List(ctx, dir)
	if err != nil || g.start == "." {
		return entries, err
	}
	entries, err = b.driver.List(ctx, path.Join(dir, g.start))
	if isOfFile(err) {
		return nil, nil
	}
	return entries, err
}

// A walk visits the files below a directory in the order of [Compare]: regular files and links to them. Links to
// directories are not followed.
type walk struct {
	backend *Backend
	ctx     context.Context
	op      string
	until   time.Time
	visit   func(Info) error
}

// run visits entries and everything below them.
func (w *walk) run(entries []Info) error {
	for _, e := range entries {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		if w.backend.now().After(w.until) {
			return errLate
		}
		if err := w.enter(e); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) enter(e Info) error {
	switch {
	case e.Irregular, e.Dir && (e.Link || path.Base(e.Path) == ".git"):
		return nil
	case !e.Dir:
		return w.visit(e)
	}
	entries, err := w.backend.driver.List(w.ctx, e.Path)
	if err != nil {
		return w.passOver(e.Path, err)
	}
	return w.run(entries)
}

// passOver ends a search with an error, except for errors about a single file. Below its start, a search skips files
// that cannot be read or no longer exist. Any other failure ends it, because a partial result would look complete.
func (w *walk) passOver(name string, err error) error {
	switch {
	case err == nil:
		return nil
	case w.ctx.Err() != nil:
		return w.ctx.Err()
	case isOfFile(err):
		return nil
	}
	return failed(w.op, name, err)
}

// isOfFile reports whether an error is about the type or the existence of a single file or directory.
func isOfFile(err error) bool {
	return slices.ContainsFunc(
		[]error{ErrNotFound, ErrNotDir, ErrIsDir, ErrNotFile, ErrLink, ErrEscapes, ErrDenied, ErrBadName},
		func(kind error) bool { return errors.Is(err, kind) },
	)
}

// relative returns a path relative to dir, which is above it.
func relative(dir, name string) string {
	if dir == "." {
		return name
	}
	return strings.TrimPrefix(name, dir+"/")
}

// The maximum length of a path and of a name, in bytes, as in Linux.
const (
	maxPath = 4096
	maxName = 255
)

// Clean returns the path as backends use it, relative, without "." and empty segments. The error describes why no
// backend accepts the path. It checks only the text; the backend handles links.
//
// ".." is refused even where it would stay inside, since what it means depends on links; so is a leading "~", which
// models use for a home directory.
func Clean(name string) (string, error) {
	switch {
	case len(name) > maxPath:
		return "", &PathError{Op: "resolve", Path: name[:80] + "…", Err: ErrBadName}
	case strings.ContainsRune(name, 0):
		return "", &PathError{Op: "resolve", Path: name, Err: ErrBadName}
	case strings.HasPrefix(name, "/"), strings.HasPrefix(path.Clean(name), "~"), climbs(name):
		return "", &PathError{Op: "resolve", Path: name, Err: ErrEscapes}
	case len(name) > maxName && slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return len(part) > maxName }):
		return "", &PathError{Op: "resolve", Path: name, Err: ErrBadName}
	}
	return path.Clean(name), nil
}

// climbs reports whether a component of the path is "..", written with slashes
// of either kind.
func climbs(name string) bool {
	return strings.Contains(name, "..") && slices.Contains(strings.FieldsFunc(name, func(c rune) bool { return c == '/' || c == '\\' }), "..")
}

// Compare orders paths as a tree is read: directory by directory, and the names within one by their bytes. The entries
// of "a" come before "a-b".
func Compare(a, b string) int {
	for {
		headA, restA, moreA := strings.Cut(a, "/")
		headB, restB, moreB := strings.Cut(b, "/")
		if c := cmp.Compare(headA, headB); c != 0 {
			return c
		}
		switch {
		case !moreA && !moreB:
			return 0
		case !moreA:
			return -1
		case !moreB:
			return 1
		}
		a, b = restA, restB
	}
}
