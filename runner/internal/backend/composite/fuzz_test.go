package composite

import (
	"errors"
	"path"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/backend"
)

// Whatever path is written, it goes to the one mount that its segments name,
// and nowhere where it is read-only.
func FuzzPaths(f *testing.F) {
	for _, name := range []string{
		"rw/f", "ro/f", "rw/../ro/f", "rwx/f", "rw", "rw/deep/f", "rw/deep", "./ro/./f", "ro//f", "/ro/f", "", ".", "..", "ro/../../x", `rw\..\ro\f`,
		"rw/\x00", "~/rw", "RW/f", "rw/deep/../f", "f", "ro/f/x", "rw /f",
	} {
		f.Add(name, "**/"+name)
	}
	f.Fuzz(func(t *testing.T, name, pattern string) {
		parts := map[string]backend.Driver{"rw": inMemory(), "ro": inMemory(), "rw/deep": inMemory()}
		put(t, parts["ro"], "f", "old")
		c := mounted(
			t, Mount{Path: "/rw", Driver: parts["rw"]}, Mount{Path: "/ro", Driver: parts["ro"], ReadOnly: true},
			Mount{Path: "/rw/deep", Driver: parts["rw/deep"]},
		)
		_, err := over(c).Write(t.Context(), name, []byte("new"), backend.Any)
		_, _ = over(c).Edit(t.Context(), name, backend.Edit{Old: "old", New: "new"})
		page, readErr := over(parts["ro"]).Read(t.Context(), "f", backend.Window{Limit: 1})
		if readErr != nil || page.Lines[0] != "old" {
			t.Fatalf("Write to %q changed what is read-only: %v", name, page.Lines)
		}
		want := map[string]bool{"ro/f": true}
		if err == nil {
			want[path.Clean(name)] = true
		}
		got := everything(t, parts)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("after Write to %q (error %v) -want +got:\n%s", name, err, diff)
		}
		globOnly(t, c, pattern, got)
	})
}

// globOnly asserts that a pattern finds only what is there.
func globOnly(t *testing.T, c *Composite, pattern string, there map[string]bool) {
	t.Helper()
	found, err := over(c).Glob(t.Context(), pattern, ".", nil)
	for _, i := range found.Items {
		if !there[i.Path] {
			t.Fatalf("Glob(%q) found %q", pattern, i.Path)
		}
	}
	var wrong *backend.PatternError
	if err != nil && !errors.As(err, &wrong) {
		t.Fatalf("Glob(%q): error %v", pattern, err)
	}
}

// everything is all the files that backends have, by where they are mounted.
func everything(t *testing.T, parts map[string]backend.Driver) map[string]bool {
	t.Helper()
	all := map[string]bool{}
	for at, d := range parts {
		for _, file := range files(t, d, ".") {
			all[path.Join(at, file)] = true
		}
	}
	return all
}

// files are all the files of a backend, hidden ones too.
func files(t *testing.T, d backend.Driver, dir string) []string {
	t.Helper()
	infos, err := d.List(t.Context(), dir)
	if err != nil {
		t.Fatalf("List(%q): %v", dir, err)
	}
	var all []string
	for _, i := range infos {
		if i.Dir {
			all = append(all, files(t, d, i.Path)...)
		} else {
			all = append(all, i.Path)
		}
	}
	return all
}
