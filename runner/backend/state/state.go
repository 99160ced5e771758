// Package state has the files of a session outside of the workspace: scratch files, and large tool results.
//
// There are two drivers, which pass the same suite and have the same bounds. New keeps them in memory. Open keeps them
// in a directory of the state directory, with a backend of package disk, so that they exist after a restart. They share
// that disk with the journal, so their total size is bounded: a model must not be able to fill it.
package state

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/deckhand-dev/deckhand/internal/shared/clock"
	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/backend/store"
	"github.com/deckhand-dev/deckhand/runner/internal/backend/disk"
)

// The default bounds.
const (
	DefaultBytes = store.DefaultBytes
	DefaultFiles = store.DefaultKeys
)

// Options bound the files of a session. The zero value has the defaults.
type Options struct {
	// Bytes is the maximum size of all files together, Files the maximum number of files.
	Bytes int64
	Files int
	// Now dates the files in memory.
	Now func() time.Time
}

func (o Options) clamp() Options {
	if o.Bytes == 0 {
		o.Bytes = DefaultBytes
	}
	if o.Files == 0 {
		o.Files = DefaultFiles
	}
	o.Now = clock.Or(o.Now)
	return o
}

// New makes a driver of files in memory.
func New(o Options) backend.Driver {
	o = o.clamp()
	kv := store.NewMemory(store.MemoryOptions{Bytes: o.Bytes, Keys: o.Files, Now: o.Now})
	return store.New(kv, store.Options{File: o.Bytes})
}

// A Dir is a driver of a directory.
type Dir interface {
	backend.Driver
	io.Closer
}

// Open makes a driver of a directory, with the files that an earlier one left there. It creates the directory if
// necessary. Only one process may use it at a time; Close releases it.
func Open(dir string, o Options) (Dir, error) {
	o = o.clamp()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the directory of a session's files: %w", err)
	}
	return disk.OpenWithin(dir, disk.Quota{Bytes: o.Bytes, Files: o.Files})
}
