package composite

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/backend/backendtest"
	"github.com/deckhand-dev/deckhand/runner/backend/state"
	"github.com/deckhand-dev/deckhand/runner/backend/store"
	"github.com/deckhand-dev/deckhand/runner/internal/backend/disk"
)

func noon() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

func onDisk(t *testing.T) backend.Backend {
	t.Helper()
	d, err := disk.Open(t.TempDir(), noon)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func inMemory() backend.Backend { return state.New(state.Options{Now: noon}) }

func inStore() backend.Backend {
	return store.New(store.NewMemory(store.MemoryOptions{Now: noon}), store.Options{Now: noon})
}

func mounted(t *testing.T, mounts ...Mount) *Composite {
	t.Helper()
	c, err := New(mounts...)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return c
}

// four are the places of an agent, and what was put there.
func four(t *testing.T, files ...string) *Composite {
	t.Helper()
	results := inMemory()
	put(t, results, "s3c1", "evicted\n")
	c := mounted(
		t,
		Mount{Path: "/workspace", Backend: onDisk(t)},
		Mount{Path: "/tmp", Backend: inMemory()},
		Mount{Path: "/results", Backend: results, ReadOnly: true},
		Mount{Path: "/memories", Backend: inStore()},
	)
	for _, f := range files {
		put(t, c, f, f+"\n")
	}
	return c
}

func put(t *testing.T, b backend.Backend, path, content string) {
	t.Helper()
	if _, err := b.Write(t.Context(), path, []byte(content), backend.Any); err != nil {
		t.Fatalf("Write(%q): %v", path, err)
	}
}

// At one place of several, and as the only one there is, a mount is what its
// backend is alone.
func TestConformance(t *testing.T) {
	places := map[string]func(t *testing.T) backend.Backend{
		"all of it": func(t *testing.T) backend.Backend { return mounted(t, Mount{Path: "/", Backend: onDisk(t)}) },
		"the root, with a mount inside": func(t *testing.T) backend.Backend {
			return &sub{"top", mounted(t, Mount{Path: "/", Backend: inStore()}, Mount{Path: "/tmp", Backend: inMemory()})}
		},
		"workspace": func(t *testing.T) backend.Backend { return &sub{"workspace", four(t)} },
		"tmp":       func(t *testing.T) backend.Backend { return &sub{"tmp", four(t)} },
		"memories":  func(t *testing.T) backend.Backend { return &sub{"memories", four(t)} },
		"two levels down": func(t *testing.T) backend.Backend {
			return &sub{"a/b", mounted(t, Mount{Path: "/a/b", Backend: onDisk(t)}, Mount{Path: "/a", Backend: inMemory()})}
		},
	}
	for name, open := range places {
		t.Run(name, func(t *testing.T) { backendtest.Run(t, open) })
	}
}

// A sub is a backend from one of its directories on.
type sub struct {
	dir string
	backend.Backend
}

func (b *sub) down(name string) string {
	if clean, err := backend.Clean(name); err == nil {
		return strings.TrimSuffix(b.dir+"/"+clean, "/.")
	}
	return name
}

func (b *sub) up(name string) string { return strings.TrimPrefix(name, b.dir+"/") }

func (b *sub) Resolve(ctx context.Context, path string) (string, error) {
	resolved, err := b.Backend.Resolve(ctx, b.down(path))
	if resolved == b.down(".") {
		return ".", err
	}
	return b.up(resolved), err
}

func (b *sub) List(ctx context.Context, dir string) ([]backend.Info, error) {
	infos, err := b.Backend.List(ctx, b.down(dir))
	for i := range infos {
		infos[i].Path = b.up(infos[i].Path)
	}
	if dir == "." && errors.Is(err, backend.ErrNotFound) {
		err = nil // an empty root is there
	}
	return infos, err
}

func (b *sub) Read(ctx context.Context, path string, w backend.Window) (backend.Page, error) {
	return b.Backend.Read(ctx, b.down(path), w)
}

func (b *sub) Write(ctx context.Context, path string, data []byte, when backend.Version) (backend.Written, error) {
	return b.Backend.Write(ctx, b.down(path), data, when)
}

func (b *sub) Edit(ctx context.Context, path string, e backend.Edit) (backend.Edited, error) {
	return b.Backend.Edit(ctx, b.down(path), e)
}

func (b *sub) Grep(ctx context.Context, q backend.Query) (backend.Matches, error) {
	q.Dir = b.down(q.Dir)
	if skip := q.Skip; skip != nil {
		q.Skip = func(path string) bool { return skip(b.up(path)) }
	}
	found, err := b.Backend.Grep(ctx, q)
	for i := range found.Items {
		found.Items[i].Path = b.up(found.Items[i].Path)
	}
	return found, err
}

func (b *sub) Glob(ctx context.Context, pattern, dir string, skip func(backend.Info) bool) (backend.Found, error) {
	found, err := b.Backend.Glob(ctx, pattern, b.down(dir), func(info backend.Info) bool {
		info.Path = b.up(info.Path)
		return skip != nil && skip(info)
	})
	for i := range found.Items {
		found.Items[i].Path = b.up(found.Items[i].Path)
	}
	return found, err
}

func TestNew(t *testing.T) {
	b := inMemory()
	for name, tc := range map[string]struct {
		mounts []Mount
		want   string
	}{
		"nothing":            {nil, "a composite backend needs a mount"},
		"a relative path":    {[]Mount{{Path: "tmp", Backend: b}}, `"tmp" is no path for a mount: it must be absolute, without detours, such as /workspace`},
		"a path not clean":   {[]Mount{{Path: "/tmp/", Backend: b}}, `"/tmp/" is no path for a mount: it must be absolute, without detours, such as /workspace`},
		"a path that climbs": {[]Mount{{Path: "/..", Backend: b}}, `"/.." is no path for a mount: it must be absolute, without detours, such as /workspace`},
		"no path":            {[]Mount{{Backend: b}}, `"" is no path for a mount: it must be absolute, without detours, such as /workspace`},
		"no backend":         {[]Mount{{Path: "/tmp"}}, "the mount /tmp has no backend"},
		"one path twice":     {[]Mount{{Path: "/tmp", Backend: b}, {Path: "/tmp", Backend: inStore()}}, "two backends are mounted at /tmp"},
	} {
		if _, err := New(tc.mounts...); err == nil || err.Error() != tc.want {
			t.Errorf("New with %s: error %v, want %s", name, err, tc.want)
		}
	}
}

// A path belongs to a mount by its segments, and to the deepest of several.
func TestWhoseAPathIs(t *testing.T) {
	mem, memories, deep := inMemory(), inMemory(), inMemory()
	c := mounted(t, Mount{Path: "/mem", Backend: mem}, Mount{Path: "/memories", Backend: memories}, Mount{Path: "/mem/a/b", Backend: deep})
	for _, path := range []string{"mem/f", "memories/f", "mem/a/f", "mem/a/b/f", "mem/a/bb/f"} {
		put(t, c, path, "x")
	}
	for name, tc := range map[string]struct {
		b    backend.Backend
		want []string
	}{
		"/mem":      {mem, []string{"a/bb/f", "a/f", "f"}},
		"/memories": {memories, []string{"f"}},
		"/mem/a/b":  {deep, []string{"f"}},
	} {
		if diff := cmp.Diff(tc.want, globbed(t, tc.b, "*", ".")); diff != "" {
			t.Errorf("in %s -want +got:\n%s", name, diff)
		}
	}
}

func globbed(t *testing.T, b backend.Backend, pattern, dir string) []string {
	t.Helper()
	found, err := b.Glob(t.Context(), pattern, dir, nil)
	if err != nil {
		t.Fatalf("Glob(%q, %q): %v", pattern, dir, err)
	}
	var names []string
	for _, i := range found.Items {
		names = append(names, i.Path)
	}
	return names
}

func TestOneBackendMayHaveTwoPlaces(t *testing.T) {
	b := inMemory()
	c := mounted(t, Mount{Path: "/rw", Backend: b}, Mount{Path: "/ro", Backend: b, ReadOnly: true})
	put(t, c, "rw/f", "x")
	if diff := cmp.Diff([]string{"ro/f", "rw/f"}, globbed(t, c, "*", ".")); diff != "" {
		t.Errorf("Glob -want +got:\n%s", diff)
	}
	_, err := c.Write(t.Context(), "ro/f", []byte("y"), backend.Any)
	if !errors.Is(err, backend.ErrDenied) {
		t.Errorf("Write to the place that is read-only: %v", err)
	}
}

func TestNothingIsWrittenWhereItIsReadOnly(t *testing.T) {
	c := four(t)
	_, writing := c.Write(t.Context(), "results/new", nil, backend.Any)
	_, editing := c.Edit(t.Context(), "results/s3c1", backend.Edit{Old: "evicted", New: "x"})
	_, root := c.Write(t.Context(), "results", nil, backend.Any)
	for _, err := range []error{writing, editing, root} {
		var of *backend.ReadOnlyError
		if !errors.As(err, &of) || of.Place != "/results" || !errors.Is(err, backend.ErrDenied) {
			t.Errorf("error %v, want that /results is read-only", err)
		}
	}
	page, err := c.Read(t.Context(), "results/s3c1", backend.Window{Limit: 1})
	if err != nil || page.Lines[0] != "evicted" {
		t.Errorf("Read: %v, error %v", page.Lines, err)
	}
}

func TestOutsideOfAllMounts(t *testing.T) {
	c := four(t)
	want := []string{"/memories", "/results", "/tmp", "/workspace"}
	_, listing := c.List(t.Context(), "etc")
	_, reading := c.Read(t.Context(), "etc/passwd", backend.Window{Limit: 1})
	_, writing := c.Write(t.Context(), "file", nil, backend.Any)
	_, globbing := c.Glob(t.Context(), "*", "work", nil)
	_, searching := c.Grep(t.Context(), backend.Query{Pattern: "x", Dir: "mem"})
	for _, err := range []error{listing, reading, writing, globbing, searching} {
		var outside *backend.OutsideError
		if !errors.As(err, &outside) || !errors.Is(err, backend.ErrNotFound) {
			t.Errorf("error %v, want an OutsideError", err)
			continue
		}
		if diff := cmp.Diff(want, outside.Places); diff != "" {
			t.Errorf("Places -want +got:\n%s", diff)
		}
	}
	_, err := c.Read(t.Context(), ".", backend.Window{Limit: 1})
	if !errors.Is(err, backend.ErrIsDir) {
		t.Errorf("Read of the root: %v, want ErrIsDir", err)
	}
	_, err = c.Write(t.Context(), ".", nil, backend.Any)
	if !errors.Is(err, backend.ErrIsDir) {
		t.Errorf("Write to the root: %v, want ErrIsDir", err)
	}
}
