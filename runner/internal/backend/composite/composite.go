package composite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/backend"
)

// A Mount puts a backend at a path.
type Mount struct {
	// Path is absolute and clean: "/workspace".
	Path    string
	Backend backend.Backend
	// ReadOnly refuses every change through this mount.
	ReadOnly bool
}

// at is the path as backends have it.
func (m Mount) at() string { return cmp.Or(strings.TrimPrefix(m.Path, "/"), ".") }

// A Composite is a backend made of mounts.
type Composite struct {
	mounts []Mount // the longest path first, then by path
}

var _ backend.Backend = (*Composite)(nil)

// New puts backends together. Each needs a path of its own; one backend may
// have several.
func New(mounts ...Mount) (*Composite, error) {
	if len(mounts) == 0 {
		return nil, errors.New("a composite backend needs a mount")
	}
	taken := map[string]bool{}
	for _, m := range mounts {
		_, err := backend.Clean(m.at())
		switch {
		case err != nil, !path.IsAbs(m.Path), path.Clean(m.Path) != m.Path:
			return nil, fmt.Errorf("%q is no path for a mount: it must be absolute, without detours, such as /workspace", m.Path)
		case m.Backend == nil:
			return nil, fmt.Errorf("the mount %s has no backend", m.Path)
		case taken[m.Path]:
			return nil, fmt.Errorf("two backends are mounted at %s", m.Path)
		}
		taken[m.Path] = true
	}
	c := &Composite{mounts: slices.Clone(mounts)}
	slices.SortFunc(c.mounts, func(a, b Mount) int {
		return cmp.Or(cmp.Compare(depth(b.at()), depth(a.at())), backend.Compare(a.at(), b.at()))
	})
	return c, nil
}

// depth is how many segments a path has.
func depth(name string) int {
	if name == "." {
		return 0
	}
	return strings.Count(name, "/") + 1
}

// Places are the paths of the mounts, sorted.
func (c *Composite) Places() []string {
	places := make([]string, len(c.mounts))
	for i, m := range c.mounts {
		places[i] = m.Path
	}
	slices.Sort(places)
	return places
}

// within reports whether a path is a directory or something below it, and
// returns what remains of it there.
func within(dir, name string) (rest string, ok bool) {
	switch {
	case dir == ".":
		return name, true
	case name == dir:
		return ".", true
	}
	return strings.CutPrefix(name, dir+"/")
}

// A spot is a path, and whose it is.
type spot struct {
	name  string
	mount *Mount // nil: of none
	rest  string // the path in the mount
	// leads says that mounts are below the path, so that it is a directory
	// whatever its mount has there.
	leads bool
}

// find says whose a path is.
func (c *Composite) find(ctx context.Context, name string) (spot, error) {
	if err := ctx.Err(); err != nil {
		return spot{}, err
	}
	name, err := backend.Clean(name)
	if err != nil {
		return spot{}, err
	}
	s := spot{name: name}
	for i := range c.mounts {
		m := &c.mounts[i]
		if rest, ok := within(name, m.at()); ok && rest != "." {
			s.leads = true
		}
		if rest, ok := within(m.at(), name); ok && s.mount == nil {
			s.mount, s.rest = m, rest
		}
	}
	if s.mount == nil && !s.leads {
		return spot{}, &backend.OutsideError{Places: c.Places()}
	}
	return s, nil
}

// file is find for what must be a file.
func (c *Composite) file(ctx context.Context, name string) (spot, error) {
	s, err := c.find(ctx, name)
	if err == nil && s.leads {
		err = backend.ErrIsDir
	}
	return s, err
}

// change is file for what is about to be changed.
func (c *Composite) change(ctx context.Context, name string) (spot, error) {
	s, err := c.find(ctx, name)
	switch {
	case err != nil:
		return s, err
	case s.mount != nil && s.mount.ReadOnly:
		return s, &backend.ReadOnlyError{Place: s.mount.Path}
	case s.leads:
		return s, backend.ErrIsDir
	}
	return s, nil
}

// outer is a path of a mount as the composite has it.
func (m Mount) outer(name string) string { return path.Join(m.at(), name) }

// failed makes the error of an operation, with the path as it was given. The
// errors of a context stay as they are.
func failed(op, name string, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if inner, ok := errors.AsType[*backend.PathError](err); ok {
		op, err = inner.Op, inner.Err
	}
	return &backend.PathError{Op: op, Path: name, Err: err}
}

// Resolve implements [backend.Backend]. A link does not lead from one mount to
// another.
func (c *Composite) Resolve(ctx context.Context, name string) (string, error) {
	s, err := c.find(ctx, name)
	if err != nil {
		return "", failed("resolve", name, err)
	}
	if s.mount == nil {
		return s.name, nil
	}
	rest, err := s.mount.Backend.Resolve(ctx, s.rest)
	switch {
	case err != nil && s.unless(err) == nil:
		return s.name, nil
	case err != nil:
		return "", failed("resolve", name, err)
	}
	resolved := s.mount.outer(rest)
	if c.hidden(s.mount, resolved) {
		return "", failed("resolve", name, backend.ErrEscapes)
	}
	return resolved, nil
}

// Read implements [backend.Backend].
func (c *Composite) Read(ctx context.Context, name string, w backend.Window) (backend.Page, error) {
	s, err := c.file(ctx, name)
	if err != nil {
		return backend.Page{}, failed("read", name, err)
	}
	page, err := s.mount.Backend.Read(ctx, s.rest, w)
	if err != nil {
		return backend.Page{}, failed("read", name, err)
	}
	return page, nil
}

// Write implements [backend.Backend].
func (c *Composite) Write(ctx context.Context, name string, data []byte, when backend.Version) (backend.Written, error) {
	s, err := c.change(ctx, name)
	if err != nil {
		return backend.Written{}, failed("write", name, err)
	}
	written, err := s.mount.Backend.Write(ctx, s.rest, data, when)
	if err != nil {
		return backend.Written{}, failed("write", name, err)
	}
	return written, nil
}

// Edit implements [backend.Backend].
func (c *Composite) Edit(ctx context.Context, name string, e backend.Edit) (backend.Edited, error) {
	s, err := c.change(ctx, name)
	if err != nil {
		return backend.Edited{}, failed("edit", name, err)
	}
	edited, err := s.mount.Backend.Edit(ctx, s.rest, e)
	if err != nil {
		return backend.Edited{}, failed("edit", name, err)
	}
	return edited, nil
}
