// Package composite is one driver made of several, each mounted at a path, as a filesystem is made of disks.
//
// Its root is above all mounts: a file that a model knows as "/workspace/a.go" is "workspace/a.go" here. A path belongs
// to the mount that shares the most segments with it: "/mem" does not contain "/memories", and a mount at
// "/workspace/vendor" hides the directory vendor of "/workspace". A directory that only leads to mounts can be listed;
// nothing is written to it. A path below no mount is an *backend.OutsideError, which names the mounts.
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

// A Mount puts the files of a driver at a path.
type Mount struct {
	// Path is absolute and clean: "/workspace".
	Path   string
	Driver backend.Driver
	// ReadOnly refuses every change through this mount.
	ReadOnly bool
}

// at returns the path as backends have it.
func (m Mount) at() string { return cmp.Or(strings.TrimPrefix(m.Path, "/"), ".") }

// A Composite is a driver made of mounts.
type Composite struct {
	mounts []Mount // the longest path first, then by path
}

var _ backend.Driver = (*Composite)(nil)

// New combines drivers. Each mount needs its own path; one driver may have several mounts.
func New(mounts ...Mount) (*Composite, error) {
	if len(mounts) == 0 {
		return nil, errors.New("a composite needs a mount")
	}
	taken := map[string]bool{}
	for _, m := range mounts {
		_, err := backend.Clean(m.at())
		switch {
		case err != nil, !path.IsAbs(m.Path), path.Clean(m.Path) != m.Path:
			return nil, fmt.Errorf("%q is no path for a mount: it must be absolute, without detours, such as /workspace", m.Path)
		case m.Driver == nil:
			return nil, fmt.Errorf("the mount %s has no driver", m.Path)
		case taken[m.Path]:
			return nil, fmt.Errorf("two drivers are mounted at %s", m.Path)
		}
		taken[m.Path] = true
	}
	c := &Composite{mounts: slices.Clone(mounts)}
	slices.SortFunc(c.mounts, func(a, b Mount) int {
		return cmp.Or(cmp.Compare(depth(b.at()), depth(a.at())), backend.Compare(a.at(), b.at()))
	})
	return c, nil
}

// depth returns how many segments a path has.
func depth(name string) int {
	if name == "." {
		return 0
	}
	return strings.Count(name, "/") + 1
}

// Places returns the paths of the mounts, sorted.
func (c *Composite) Places() []string {
	places := make([]string, len(c.mounts))
	for i, m := range c.mounts {
		places[i] = m.Path
	}
	slices.Sort(places)
	return places
}

// within reports whether a path is a directory or below it, and returns the rest of the path there.
func within(dir, name string) (rest string, ok bool) {
	switch {
	case dir == ".":
		return name, true
	case name == dir:
		return ".", true
	}
	return strings.CutPrefix(name, dir+"/")
}

// A location is a path, and the mount that it belongs to.
type location struct {
	name  string
	mount *Mount // nil: of none
	rest  string // the path in the mount
	// aboveMounts reports that mounts are below the path, so that it is a directory even if its own mount has no such
	// directory.
	aboveMounts bool
}

// find returns the mount of a path.
func (c *Composite) find(name string) (location, error) {
	s := location{name: name}
	for i := range c.mounts {
		m := &c.mounts[i]
		if rest, ok := within(name, m.at()); ok && rest != "." {
			s.aboveMounts = true
		}
		if rest, ok := within(m.at(), name); ok && s.mount == nil {
			s.mount, s.rest = m, rest
		}
	}
	if s.mount == nil && !s.aboveMounts {
		return location{}, &backend.OutsideError{Places: c.Places()}
	}
	return s, nil
}

// readOnly returns the error of writing through a read-only mount, or nil.
func (m Mount) readOnly() error {
	if m.ReadOnly {
		return &backend.ReadOnlyError{Path: m.Path}
	}
	return nil
}

// outerPath returns the composite's path of a path of a mount.
func (m Mount) outerPath(name string) string { return path.Join(m.at(), name) }

// ignoreMissing returns an error of the mount. It returns nil if the error means that the directory exists only because
// it leads to other mounts.
func (l location) ignoreMissing(err error) error {
	if l.aboveMounts && (errors.Is(err, backend.ErrNotFound) || errors.Is(err, backend.ErrNotDir)) {
		return nil
	}
	return err
}

// Resolve implements [backend.Driver]. A link does not lead from one mount to
// another.
func (c *Composite) Resolve(ctx context.Context, name string) (string, error) {
	s, err := c.find(name)
	if err != nil || s.mount == nil {
		return s.name, err
	}
	rest, err := s.mount.Driver.Resolve(ctx, s.rest)
	if err != nil {
		return s.name, s.ignoreMissing(err)
	}
	resolved := s.mount.outerPath(rest)
	if to, err := c.find(resolved); err != nil || to.mount != s.mount {
		return "", backend.ErrEscapes
	}
	return resolved, nil
}

// List implements [backend.Driver].
func (c *Composite) List(ctx context.Context, dir string) ([]backend.Info, error) {
	s, err := c.find(dir)
	if err != nil {
		return nil, err
	}
	var infos []backend.Info
	if s.mount != nil {
		inner, err := s.mount.Driver.List(ctx, s.rest)
		if s.ignoreMissing(err) != nil {
			return nil, err
		}
		for _, info := range inner {
			info.Path = s.mount.outerPath(info.Path)
			infos = append(infos, info)
		}
	}
	// What leads to a mount hides what is there under its name.
	for _, point := range c.mountPoints(s.name) {
		infos = slices.DeleteFunc(infos, func(i backend.Info) bool { return i.Path == point.Path })
		infos = append(infos, point)
	}
	slices.SortFunc(infos, func(a, b backend.Info) int { return cmp.Compare(a.Path, b.Path) })
	return infos, nil
}

// mountPoints returns the entries of a directory that are mounts or lead to some, each
// once.
func (c *Composite) mountPoints(dir string) []backend.Info {
	var infos []backend.Info
	for _, m := range c.mounts {
		rest, ok := within(dir, m.at())
		if !ok || rest == "." {
			continue
		}
		name, _, _ := strings.Cut(rest, "/")
		info := backend.Info{Path: path.Join(dir, name), Dir: true}
		if !slices.Contains(infos, info) {
			infos = append(infos, info)
		}
	}
	return infos
}

// Open implements [backend.Driver].
func (c *Composite) Open(ctx context.Context, name string) (*backend.File, error) {
	s, err := c.find(name)
	switch {
	case err != nil:
		return nil, err
	case s.aboveMounts:
		return nil, backend.ErrIsDir
	}
	f, err := s.mount.Driver.Open(ctx, s.rest)
	if err == nil {
		f.ReadOnly = s.mount.readOnly()
	}
	return f, err
}

// Write implements [backend.Driver].
func (c *Composite) Write(ctx context.Context, name string, data []byte, when backend.Revision) error {
	s, err := c.find(name)
	switch {
	case err != nil:
		return err
	case s.mount != nil && s.mount.ReadOnly:
		return s.mount.readOnly()
	case s.aboveMounts:
		return backend.ErrIsDir
	}
	return s.mount.Driver.Write(ctx, s.rest, data, when)
}
