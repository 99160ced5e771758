package state

import (
	"testing"

	"github.com/deckhand-dev/deckhand/runner/backend"
)

// The write of twelve bytes to a path that is there. In memory it is what is
// published elsewhere as the cost of a backend's write; the same in a directory
// is what a write costs that outlives the process.
func BenchmarkWrite(b *testing.B) {
	inDirectory, err := Open(b.TempDir(), Options{Now: noon})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = inDirectory.Close() })
	for _, form := range []struct {
		name string
		d    backend.Driver
	}{
		{"12 bytes in memory", New(Options{Now: noon})},
		{"12 bytes in a directory", inDirectory},
	} {
		b.Run(form.name, func(b *testing.B) {
			b.ReportAllocs()
			files := backend.New(form.d, noon)
			data := []byte("twelve bytes")
			for b.Loop() {
				data[0]++ // what is the same already is not written
				if _, err := files.Write(b.Context(), "notes.txt", data, backend.Any); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
