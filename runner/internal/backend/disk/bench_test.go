package disk

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/backend"
)

// newTree is a tree of 5,000 files of 4 KiB, four levels deep.
func newTree(b *testing.B) *backend.Backend {
	b.Helper()
	dir := b.TempDir()
	content := bytes.Repeat([]byte("func (r *Reconciler) Reconcile(ctx context.Context) error {\n"), 70)
	for i := range 5_000 {
		at := filepath.Join(dir, fmt.Sprintf("p%d/q%d/r%d", i%5, i%25, i%125), fmt.Sprintf("f%d.go", i))
		if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(at, content, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	d, err := Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = d.Close() })
	return backend.New(d, noon)
}

func BenchmarkGlob(b *testing.B) {
	d := newTree(b)
	for b.Loop() {
		if _, err := d.Glob(b.Context(), "f123*.go", "", nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkGrep(b *testing.B) {
	d := newTree(b)
	for name, q := range map[string]backend.Query{
		"literal":    {Pattern: "nowhere"},
		"fixed":      {Pattern: "nowhere(", Fixed: true},
		"any case":   {Pattern: "nowhere", IgnoreCase: true},
		"expression": {Pattern: `func \w+\(`},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := d.Grep(b.Context(), q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkGrepLargeFiles searches four files of 9 MB.
func BenchmarkGrepLargeFiles(b *testing.B) {
	dir := b.TempDir()
	const size = 9 << 20
	line := "func (r *Reconciler) Reconcile(ctx context.Context) error {\n"
	content := bytes.Repeat([]byte(line), size/len(line))
	for i := range 4 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%d", i)), content, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	d, err := Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = d.Close() })
	files := backend.New(d, noon)
	for name, q := range map[string]backend.Query{
		"literal":    {Pattern: "nowhere"},
		"every line": {Pattern: "Reconcile", ByFile: true},
		"any case":   {Pattern: "nowhere", IgnoreCase: true},
		"expression": {Pattern: `func \w+\(`},
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(4 * size)
			for b.Loop() {
				if _, err := files.Grep(b.Context(), q); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkWrite(b *testing.B) {
	d, err := Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = d.Close() })
	files := backend.New(d, noon)
	data := bytes.Repeat([]byte("x"), 4096)
	for i := 0; b.Loop(); i++ {
		data[0] = byte(i)
		if _, err := files.Write(b.Context(), "f", data, backend.Any); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRead reads small files, each four levels deep.
func BenchmarkRead(b *testing.B) {
	d := newTree(b)
	for i := 0; b.Loop(); i++ {
		f := i % 5_000
		if _, err := d.Read(b.Context(), fmt.Sprintf("p%d/q%d/r%d/f%d.go", f%5, f%25, f%125, f), backend.Window{Limit: 100}); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkList lists a directory of 1,000 files.
func BenchmarkList(b *testing.B) {
	dir := b.TempDir()
	for i := range 1_000 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("f%d", i)), nil, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	d, err := Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = d.Close() })
	files := backend.New(d, noon)
	for b.Loop() {
		if _, err := files.List(b.Context(), "."); err != nil {
			b.Fatal(err)
		}
	}
}
