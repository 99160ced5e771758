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

func onDisk(t *testing.T) backend.Driver {
	t.Helper()
	d, err := disk.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func inMemory() backend.Driver { return state.New(state.Options{Now: noon}) }

func inStore() backend.Driver {
	return store.New(store.NewMemory(store.MemoryOptions{Now: noon}), store.Options{})
}

func mounted(t *testing.T, mounts ...Mount) *Composite {
	t.Helper()
	c, err := New(mounts...)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return c
}

// over is the files of a driver.
func over(d backend.Driver) *backend.Backend { return backend.New(d, noon) }

// four are the places of an agent, and what was put there.
func four(t *testing.T, files ...string) *Composite {
	t.Helper()
	results := inMemory()
	put(t, results, "s3c1", "evicted\n")
	c := mounted(
		t,
		Mount{Path: "/workspace", Driver: onDisk(t)},
		Mount{Path: "/tmp", Driver: inMemory()},
		Mount{Path: "/results", Driver: results, ReadOnly: true},
		Mount{Path: "/memories", Driver: inStore()},
	)
	for _, f := range files {
		put(t, c, f, f+"\n")
	}
	return c
}

func put(t *testing.T, d backend.Driver, path, content string) {
	t.Helper()
	if _, err := over(d).Write(t.Context(), path, []byte(content), backend.Any); err != nil {
		t.Fatalf("Write(%q): %v", path, err)
	}
}

// At one place of several, and as the only one there is, a mount is what its
// backend is alone.
func TestConformance(t *testing.T) {
	places := map[string]func(t *testing.T) backend.Driver{
		"all of it": func(t *testing.T) backend.Driver { return mounted(t, Mount{Path: "/", Driver: onDisk(t)}) },
		"the root, with a mount inside": func(t *testing.T) backend.Driver {
			return &sub{"top", mounted(t, Mount{Path: "/", Driver: inStore()}, Mount{Path: "/tmp", Driver: inMemory()})}
		},
		"workspace": func(t *testing.T) backend.Driver { return &sub{"workspace", four(t)} },
		"tmp":       func(t *testing.T) backend.Driver { return &sub{"tmp", four(t)} },
		"memories":  func(t *testing.T) backend.Driver { return &sub{"memories", four(t)} },
		"two levels down": func(t *testing.T) backend.Driver {
			return &sub{"a/b", mounted(t, Mount{Path: "/a/b", Driver: onDisk(t)}, Mount{Path: "/a", Driver: inMemory()})}
		},
	}
	for name, open := range places {
		t.Run(name, func(t *testing.T) { backendtest.Run(t, open) })
	}
}

// A sub is a driver from one of its directories on.
type sub struct {
	dir string
	backend.Driver
}

func (s *sub) down(name string) string { return strings.TrimSuffix(s.dir+"/"+name, "/.") }

func (s *sub) up(name string) string { return strings.TrimPrefix(name, s.dir+"/") }

func (s *sub) Resolve(ctx context.Context, path string) (string, error) {
	resolved, err := s.Driver.Resolve(ctx, s.down(path))
	if resolved == s.dir {
		return ".", err
	}
	return s.up(resolved), err
}

func (s *sub) List(ctx context.Context, dir string) ([]backend.Info, error) {
	infos, err := s.Driver.List(ctx, s.down(dir))
	for i := range infos {
		infos[i].Path = s.up(infos[i].Path)
	}
	if dir == "." && errors.Is(err, backend.ErrNotFound) {
		err = nil // an empty root is there
	}
	return infos, err
}

func (s *sub) Open(ctx context.Context, path string) (*backend.File, error) {
	f, err := s.Driver.Open(ctx, s.down(path))
	if path == "." && errors.Is(err, backend.ErrNotFound) {
		err = backend.ErrIsDir
	}
	return f, err
}

func (s *sub) Write(ctx context.Context, path string, data []byte, when backend.Revision) error {
	return s.Driver.Write(ctx, s.down(path), data, when)
}

func TestNew(t *testing.T) {
	b := inMemory()
	for name, tc := range map[string]struct {
		mounts []Mount
		want   string
	}{
		"nothing":            {nil, "a composite needs a mount"},
		"a relative path":    {[]Mount{{Path: "tmp", Driver: b}}, `"tmp" is no path for a mount: it must be absolute, without detours, such as /workspace`},
		"a path not clean":   {[]Mount{{Path: "/tmp/", Driver: b}}, `"/tmp/" is no path for a mount: it must be absolute, without detours, such as /workspace`},
		"a path that climbs": {[]Mount{{Path: "/..", Driver: b}}, `"/.." is no path for a mount: it must be absolute, without detours, such as /workspace`},
		"no path":            {[]Mount{{Driver: b}}, `"" is no path for a mount: it must be absolute, without detours, such as /workspace`},
		"no driver":          {[]Mount{{Path: "/tmp"}}, "the mount /tmp has no driver"},
		"one path twice":     {[]Mount{{Path: "/tmp", Driver: b}, {Path: "/tmp", Driver: inStore()}}, "two drivers are mounted at /tmp"},
	} {
		if _, err := New(tc.mounts...); err == nil || err.Error() != tc.want {
			t.Errorf("New with %s: error %v, want %s", name, err, tc.want)
		}
	}
}

// A path belongs to a mount by its segments, and to the deepest of several.
func TestWhoseAPathIs(t *testing.T) {
	mem, memories, deep := inMemory(), inMemory(), inMemory()
	c := mounted(t, Mount{Path: "/mem", Driver: mem}, Mount{Path: "/memories", Driver: memories}, Mount{Path: "/mem/a/b", Driver: deep})
	for _, path := range []string{"mem/f", "memories/f", "mem/a/f", "mem/a/b/f", "mem/a/bb/f"} {
		put(t, c, path, "x")
	}
	for name, tc := range map[string]struct {
		b    backend.Driver
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

func globbed(t *testing.T, d backend.Driver, pattern, dir string) []string {
	t.Helper()
	found, err := over(d).Glob(t.Context(), pattern, dir, nil)
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
	c := mounted(t, Mount{Path: "/rw", Driver: b}, Mount{Path: "/ro", Driver: b, ReadOnly: true})
	put(t, c, "rw/f", "x")
	if diff := cmp.Diff([]string{"ro/f", "rw/f"}, globbed(t, c, "*", ".")); diff != "" {
		t.Errorf("Glob -want +got:\n%s", diff)
	}
	_, err := over(c).Write(t.Context(), "ro/f", []byte("y"), backend.Any)
	if !errors.Is(err, backend.ErrDenied) {
		t.Errorf("Write to the place that is read-only: %v", err)
	}
}

func TestNothingIsWrittenWhereItIsReadOnly(t *testing.T) {
	c := four(t)
	_, writing := over(c).Write(t.Context(), "results/new", nil, backend.Any)
	_, editing := over(c).Edit(t.Context(), "results/s3c1", backend.Edit{Old: "evicted", New: "x"})
	direct := c.Write(t.Context(), "results/s3c1", nil, backend.None)
	root := c.Write(t.Context(), "results", nil, backend.None)
	for _, err := range []error{writing, editing, direct, root} {
		var of *backend.ReadOnlyError
		if !errors.As(err, &of) || of.Path != "/results" || !errors.Is(err, backend.ErrDenied) {
			t.Errorf("error %v, want that /results is read-only", err)
		}
	}
	page, err := over(c).Read(t.Context(), "results/s3c1", backend.Window{Limit: 1})
	if err != nil || page.Lines[0] != "evicted" {
		t.Errorf("Read: %v, error %v", page.Lines, err)
	}
}

func TestOutsideOfAllMounts(t *testing.T) {
	c := four(t)
	want := []string{"/memories", "/results", "/tmp", "/workspace"}
	_, listing := over(c).List(t.Context(), "etc")
	_, reading := over(c).Read(t.Context(), "etc/passwd", backend.Window{Limit: 1})
	_, writing := over(c).Write(t.Context(), "file", nil, backend.Any)
	_, globbing := over(c).Glob(t.Context(), "*", "work", nil)
	_, searching := over(c).Grep(t.Context(), backend.Query{Pattern: "x", Dir: "mem"})
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
	_, err := over(c).Read(t.Context(), ".", backend.Window{Limit: 1})
	if !errors.Is(err, backend.ErrIsDir) {
		t.Errorf("Read of the root: %v, want ErrIsDir", err)
	}
	_, err = over(c).Write(t.Context(), ".", nil, backend.Any)
	if !errors.Is(err, backend.ErrIsDir) {
		t.Errorf("Write to the root: %v, want ErrIsDir", err)
	}
}
