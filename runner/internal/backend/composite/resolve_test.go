package composite

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/internal/backend/disk"
)

func TestALinkDoesNotLeadFromOneMountToAnother(t *testing.T) {
	dir := t.TempDir()
	for name, target := range map[string]string{"inside": "a", "hidden": "data/f", "up": "../memories", "data/own": "f"} {
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, at); err != nil {
			t.Fatal(err)
		}
	}
	work, err := disk.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = work.Close() })
	data, err := disk.Open(filepath.Join(dir, "data"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = data.Close() })
	c, err := New(Mount{Path: "/workspace", Driver: work}, Mount{Path: "/workspace/data", Driver: data}, Mount{Path: "/memories", Driver: data})
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		want string
		err  error
	}{
		"workspace/inside":   {want: "workspace/a"},
		"workspace/data/own": {want: "workspace/data/f"},
		"memories/own":       {want: "memories/f"},
		"workspace/new/x":    {want: "workspace/new/x"},
		".":                  {want: "."},
		"workspace":          {want: "workspace"},
		"workspace/hidden":   {err: backend.ErrEscapes},
		"workspace/up/own":   {err: backend.ErrEscapes},
		"elsewhere/x":        {err: backend.ErrNotFound},
	}
	for name, tc := range cases {
		got, err := over(c).Resolve(t.Context(), name)
		if got != tc.want || !errors.Is(err, tc.err) {
			t.Errorf("Resolve(%q) = %q, %v; want %q, %v", name, got, err, tc.want, tc.err)
		}
	}
}
