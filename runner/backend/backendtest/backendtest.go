// Package backendtest is the conformance suite of drivers. A driver's test calls Run, which checks the driver against
// [backend.Driver], and a Backend over it against the needs of the file tools. Properties of one driver, such as safety
// against links, have tests of their own.
package backendtest

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/deckhand-dev/deckhand/runner/backend"
)

// Run tests a driver. Each call of open returns an empty one.
func Run(t *testing.T, open func(t *testing.T) backend.Driver) {
	t.Helper()
	groups := map[string]func(t *testing.T, b *backend.Backend){
		"List":       testList,
		"Read":       testRead,
		"ReadErrors": testReadErrors,
		"Format":     testFormat,
		"Encodings":  testEncodings,
		"Write":      testWrite,
		"Versions":   testVersions,
		"Edit":       testEdit,
		"EditErrors": testEditErrors,
		"EditsOfOne": testEditsOfOne,
		"Glob":       testGlob,
		"GlobErrors": testGlobErrors,
		"Grep":       testGrep,
		"GrepBounds": testGrepBounds,
		"Skip":       testSkip,
		"GrepErrors": testGrepErrors,
		"Paths":      testPaths,
		"Resolve":    testResolve,
		"Cancelled":  testCancelled,
		"Bounds":     testBounds,
		"Names":      testNames,
		"Windows":    testWindows,
		"Large":      testLarge,
		"Bytes":      testBytes,
		"Writers":    testWriters,
		"Turns":      testTurns,
	}
	for name, test := range groups {
		t.Run(name, func(t *testing.T) { test(t, backend.New(open(t), nil)) })
	}
	drivers := map[string]func(t *testing.T, d backend.Driver){
		"DriverOpen":      testDriverOpen,
		"DriverWrite":     testDriverWrite,
		"DriverConflict":  testDriverConflict,
		"DriverCancelled": testDriverCancelled,
	}
	for name, test := range drivers {
		t.Run(name, func(t *testing.T) { test(t, open(t)) })
	}
}

// put writes a file that the test needs.
func put(t *testing.T, b *backend.Backend, path, content string) backend.Version {
	t.Helper()
	w, err := b.Write(t.Context(), path, []byte(content), backend.Any)
	if err != nil {
		t.Fatalf("Write(%q): %v", path, err)
	}
	return w.Version
}

// tree writes files, each with its path as content.
func tree(t *testing.T, b *backend.Backend, paths ...string) {
	t.Helper()
	for _, p := range paths {
		put(t, b, p, p+"\n")
	}
}

// paths returns the paths of entries.
func paths(infos []backend.Info) []string {
	out := []string{}
	for _, i := range infos {
		out = append(out, i.Path)
	}
	return out
}

// wantError asserts the kind of an error.
func wantError(t *testing.T, call string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: error %v, want %v", call, err, want)
	}
}

// operations returns all operations of a Backend, for properties that all must have.
func operations(b *backend.Backend, path string) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"Resolve": func(ctx context.Context) error { _, err := b.Resolve(ctx, path); return err },
		"List":    func(ctx context.Context) error { _, err := b.List(ctx, path); return err },
		"Read": func(ctx context.Context) error {
			_, err := b.Read(ctx, path, backend.Window{Limit: 1})
			return err
		},
		"Write": func(ctx context.Context) error {
			_, err := b.Write(ctx, path, []byte("x"), backend.Any)
			return err
		},
		"Edit": func(ctx context.Context) error {
			_, err := b.Edit(ctx, path, backend.Edit{Old: "a", New: "b"})
			return err
		},
		"Grep": func(ctx context.Context) error {
			_, err := b.Grep(ctx, backend.Query{Pattern: "a", Dir: path})
			return err
		},
		"Glob": func(ctx context.Context) error { _, err := b.Glob(ctx, "*", path, nil); return err },
	}
}

func testPaths(t *testing.T, b *backend.Backend) {
	put(t, b, "a/f", "a\n")
	refused := map[string]error{
		"..":            backend.ErrEscapes,
		"../x":          backend.ErrEscapes,
		"a/../../x":     backend.ErrEscapes,
		"a/../f":        backend.ErrEscapes,
		`a\..\..\x`:     backend.ErrEscapes,
		`a\../x`:        backend.ErrEscapes,
		`a/..\x`:        backend.ErrEscapes,
		"/etc/passwd":   backend.ErrEscapes,
		"~":             backend.ErrEscapes,
		"~root/x":       backend.ErrEscapes,
		"a\x00b":        backend.ErrBadName,
		"/proc/self/fd": backend.ErrEscapes,
	}
	for path, want := range refused {
		for name, call := range operations(b, path) {
			wantError(t, name+" "+path, call(t.Context()), want)
		}
	}
}

// testResolve checks that without links a path resolves to itself, whether or not it exists.
func testResolve(t *testing.T, b *backend.Backend) {
	put(t, b, "d/f", "a\n")
	for path, want := range map[string]string{
		"": ".", ".": ".", "d": "d", "d/": "d", "./d//f": "d/f", "d/./none/x": "d/none/x", "none": "none", "d/f/x": "d/f/x",
	} {
		got, err := b.Resolve(t.Context(), path)
		if err != nil || got != want {
			t.Errorf("Resolve(%q) = %q, error %v; want %q", path, got, err, want)
		}
	}
}

func testCancelled(t *testing.T, b *backend.Backend) {
	put(t, b, "d/f", "a\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, call := range operations(b, "d") {
		if name == "Read" || name == "Edit" {
			call = operations(b, "d/f")[name]
		}
		wantError(t, name, call(ctx), context.Canceled)
	}
}

func testBounds(t *testing.T, b *backend.Backend) {
	content := slices.Repeat([]byte("hit\n"), backend.MaxMatches+1)
	put(t, b, "f", string(content))
	got, err := b.Grep(t.Context(), backend.Query{Pattern: "hit", Limit: 1 << 30})
	if err != nil || len(got.Items) != backend.MaxMatches || !got.Truncated {
		t.Errorf("Grep without a limit: %d matches, truncated %v, error %v", len(got.Items), got.Truncated, err)
	}
	page, err := b.Read(t.Context(), "f", backend.Window{Offset: -5, Limit: -5})
	if err != nil || len(page.Lines) != 1 || page.Start != 1 {
		t.Errorf("Read of a window out of range: %d lines from %d, error %v; want the first", len(page.Lines), page.Start, err)
	}
}

// create writes a file that the test needs.
func create(t *testing.T, d backend.Driver, path, content string) {
	t.Helper()
	if err := d.Write(t.Context(), path, []byte(content), backend.None); err != nil {
		t.Fatalf("Write(%q): %v", path, err)
	}
}

// opened returns the content of a file, and its revision.
func opened(t *testing.T, d backend.Driver, path string) (string, backend.Revision) {
	t.Helper()
	f, err := d.Open(t.Context(), path)
	if err != nil {
		t.Fatalf("Open(%q): %v", path, err)
	}
	data, err := io.ReadAll(f)
	if err != nil || int64(len(data)) != f.Size {
		t.Errorf("Open(%q): %d bytes, error %v; want %d", path, len(data), err, f.Size)
	}
	if err := f.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	return string(data), f.Revision
}

func testDriverOpen(t *testing.T, d backend.Driver) {
	create(t, d, "d/f", "one")
	if got, revision := opened(t, d, "d/f"); got != "one" || revision == backend.None {
		t.Errorf("the file has %q in revision %q", got, revision)
	}
	for path, want := range map[string]error{
		".": backend.ErrIsDir, "d": backend.ErrIsDir, "none": backend.ErrNotFound, "d/none": backend.ErrNotFound, "d/f/x": backend.ErrNotDir,
	} {
		_, err := d.Open(t.Context(), path)
		wantError(t, "Open "+path, err, want)
	}
	infos, err := d.List(t.Context(), ".")
	want := []backend.Info{{Path: "d", Dir: true}}
	if diff := cmp.Diff(want, infos, cmpopts.IgnoreFields(backend.Info{}, "ModTime")); diff != "" || err != nil {
		t.Errorf("List: error %v, -want +got:\n%s", err, diff)
	}
}

// testDriverWrite checks that an open file keeps its content while it is replaced.
func testDriverWrite(t *testing.T, d backend.Driver) {
	create(t, d, "new/deep/f", "before")
	f, err := d.Open(t.Context(), "new/deep/f")
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	defer f.Close()
	wantError(t, "Write", d.Write(t.Context(), "new/deep/f", []byte("now it is longer"), f.Revision), nil)
	before, err := io.ReadAll(f)
	if string(before) != "before" || err != nil {
		t.Errorf("the open file has %q, error %v", before, err)
	}
	if now, _ := opened(t, d, "new/deep/f"); now != "now it is longer" {
		t.Errorf("the file has %q", now)
	}
	create(t, d, "new/empty", "")
	if got, _ := opened(t, d, "new/empty"); got != "" {
		t.Errorf("the empty file has %q", got)
	}
}

// testDriverConflict checks that a Write applies to one revision of a file, and that a refused Write changes nothing.
func testDriverConflict(t *testing.T, d backend.Driver) {
	create(t, d, "f", "one")
	_, first := opened(t, d, "f")
	wantError(t, "Write to the revision opened", d.Write(t.Context(), "f", []byte("three"), first), nil)
	_, second := opened(t, d, "f")
	if second == first {
		t.Errorf("two states have the revision %q", first)
	}
	for path, when := range map[string]backend.Revision{"f": first, "g": second} {
		wantError(t, "Write of "+path+" to another revision", d.Write(t.Context(), path, []byte("x"), when), backend.ErrChanged)
	}
	wantError(t, "Write of a new file that is there", d.Write(t.Context(), "f", []byte("x"), backend.None), backend.ErrChanged)
	if got, _ := opened(t, d, "f"); got != "three" {
		t.Errorf("the file has %q", got)
	}
	_, err := d.Open(t.Context(), "g")
	wantError(t, "Open of what was not written", err, backend.ErrNotFound)
}

// testDriverCancelled checks that long operations stop with their context and change nothing.
func testDriverCancelled(t *testing.T, d backend.Driver) {
	for _, name := range []string{"a", "b"} {
		create(t, d, name, name)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := d.List(ctx, ".")
	wantError(t, "List", err, context.Canceled)
	infos, err := d.List(t.Context(), ".")
	if got := paths(infos); err != nil || !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("List: %v, error %v", got, err)
	}
}
