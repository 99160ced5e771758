package composite

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/backend"
)

// List implements [backend.Backend].
func (c *Composite) List(ctx context.Context, dir string) ([]backend.Info, error) {
	infos, err := c.list(ctx, dir)
	if err != nil {
		return nil, failed("list", dir, err)
	}
	return infos, nil
}

func (c *Composite) list(ctx context.Context, dir string) ([]backend.Info, error) {
	s, err := c.find(ctx, dir)
	if err != nil {
		return nil, err
	}
	infos, err := s.list(ctx)
	if err != nil {
		return nil, err
	}
	// What leads to a mount hides what is there under its name.
	for _, lead := range c.leads(s.name) {
		infos = slices.DeleteFunc(infos, func(i backend.Info) bool { return i.Path == lead.Path })
		infos = append(infos, lead)
	}
	slices.SortFunc(infos, func(a, b backend.Info) int { return cmp.Compare(a.Path, b.Path) })
	return infos, nil
}

// list is what the mount itself has in a directory.
func (s spot) list(ctx context.Context) ([]backend.Info, error) {
	if s.mount == nil {
		return nil, nil
	}
	inner, err := s.mount.Backend.List(ctx, s.rest)
	if err != nil {
		return nil, s.unless(err)
	}
	infos := make([]backend.Info, len(inner))
	for i, info := range inner {
		infos[i] = info
		infos[i].Path = s.mount.outer(info.Path)
	}
	return infos, nil
}

// unless is an error of the mount, but for one that means that the directory is
// there only because it leads to other mounts.
func (s spot) unless(err error) error {
	if s.leads && (errors.Is(err, backend.ErrNotFound) || errors.Is(err, backend.ErrNotDir)) {
		return nil
	}
	return err
}

// leads are the entries of a directory that are mounts or lead to some, each
// once.
func (c *Composite) leads(dir string) []backend.Info {
	var infos []backend.Info
	for _, m := range c.mounts {
		rest, ok := within(dir, m.at())
		if !ok || rest == "." {
			continue
		}
		name, _, _ := strings.Cut(rest, "/")
		info := backend.Info{Path: strings.TrimPrefix(dir+"/"+name, "./"), Dir: true}
		if !slices.Contains(infos, info) {
			infos = append(infos, info)
		}
	}
	return infos
}
