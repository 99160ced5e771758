package disk

import (
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/backend/backendtest"
)

// noon is a clock that stands still.
func noon() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

// open opens a directory of the test.
func open(t *testing.T, dir string) *Disk {
	t.Helper()
	d, err := Open(dir)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return d
}

func TestConformance(t *testing.T) {
	backendtest.Run(t, func(t *testing.T) backend.Driver { return open(t, t.TempDir()) })
}

// Where the kernel has no openat2, or a seccomp profile refuses it, all is the
// same.
func TestConformanceWithoutOpenat2(t *testing.T) {
	backendtest.Run(t, func(t *testing.T) backend.Driver { return stepwise(open(t, t.TempDir())) })
}
