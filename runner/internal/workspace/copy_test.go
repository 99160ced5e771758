package workspace

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A copy that takes long tells so, also within a large file.
func TestACopyTellsItsProgress(t *testing.T) {
	from, to, tick := t.TempDir(), t.TempDir(), make(chan time.Time, 3)
	if err := os.WriteFile(filepath.Join(from, "large"), make([]byte, copyChunk+1), 0o600); err != nil {
		t.Fatal(err)
	}
	p := pair{path: "workspace"}
	for dir, root := range map[string]**os.Root{from: &p.from, to: &p.to} {
		opened, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer opened.Close()
		*root = opened
	}
	c := &treeCopy{tick: tick}
	var told []int64
	c.progress = func() { told = append(told, c.bytes) }
	for range cap(tick) {
		tick <- time.Time{}
	}
	if err := c.copy(t.Context(), p, nil); err != nil {
		t.Fatal(err)
	}
	if len(told) != 3 || told[0] != 0 || told[1] != copyChunk || told[2] != copyChunk+1 {
		t.Errorf("it told of %v bytes", told)
	}
}
