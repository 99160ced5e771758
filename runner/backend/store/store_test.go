package store

import (
	"testing"
	"time"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/backend/backendtest"
)

// noon is a clock that stands still.
func noon() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

func newStore(o MemoryOptions) (*backend.Backend, *Memory) {
	o.Now = noon
	kv := NewMemory(o)
	return over(kv, Options{}), kv
}

// over is the files of a KV.
func over(kv KV, o Options) *backend.Backend { return backend.New(New(kv, o), noon) }

func TestConformance(t *testing.T) {
	backendtest.Run(t, func(*testing.T) backend.Driver { return New(NewMemory(MemoryOptions{Now: noon}), Options{}) })
}
