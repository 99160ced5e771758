package store

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/deckhand-dev/deckhand/runner/backend"
)

// A KV keeps values by their key. Every method is atomic, safe for concurrent
// use, and stops soon after its context ends.
type KV interface {
	// Get returns the value of a key, or ErrNoKey.
	Get(ctx context.Context, key string) (Value, error)
	// Put sets the value of a key that has the revision given, or is not there with None,
	// and returns the next revision; else it is ErrConflict. What is more than the
	// KV takes is ErrFull.
	Put(ctx context.Context, key string, data []byte, when Revision) (Revision, error)
	// List yields the keys that begin with a prefix, in any order. An error ends
	// it.
	List(ctx context.Context, prefix string) iter.Seq2[Entry, error]
	// Delete removes a key that has the revision given; else it is ErrConflict, or
	// ErrNoKey where there is none.
	Delete(ctx context.Context, key string, when Revision) error
}

// A Revision names one value that a key had. A KV never gives it out twice for
// the same key.
type Revision = backend.Revision

// None is the revision of a key that is not there.
const None = backend.None

// A Value is what a key has.
type Value struct {
	Entry
	// Data is not changed by callers.
	Data []byte
}

// An Entry is what a list says of a key.
type Entry struct {
	Key      string
	Size     int64
	Revision Revision
	ModTime  time.Time
}

// Errors of a KV, to be found with errors.Is.
var (
	ErrNoKey    = errors.New("no such key")
	ErrConflict = errors.New("the key has another revision")
	ErrFull     = errors.New("the store is full")
)
