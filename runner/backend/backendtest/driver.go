package backendtest

import (
	"context"
	"io"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/deckhand-dev/deckhand/runner/backend"
)

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
