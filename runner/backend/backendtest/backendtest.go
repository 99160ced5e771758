// Package backendtest is the conformance suite of drivers. A driver's test calls Run, which checks the driver against
// [backend.Driver], and a Backend over it against the needs of the file tools. Properties of one driver, such as safety
// against links, have tests of their own.
package backendtest

import (
	"context"
	"errors"
	"slices"
	"testing"

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
