package store

import (
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/backend/backendtest"
)

// noon is a clock that stands still.
func noon() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

func newStore(o MemoryOptions) (*Store, *Memory) {
	o.Now = noon
	kv := NewMemory(o)
	return New(kv, Options{Now: noon}), kv
}

func TestConformance(t *testing.T) {
	backendtest.Run(t, func(*testing.T) backend.Backend {
		s, _ := newStore(MemoryOptions{})
		return s
	})
}
