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
	// Put sets the value of a key that has the given revision, or does not exist with None, and returns the new
	// revision. Otherwise the error is ErrConflict. If the KV cannot store the value, the error is ErrFull.
	Put(ctx context.Context, key string, data []byte, when Revision) (Revision, error)
	// List yields the keys that begin with a prefix, in any order. An error ends
	// it.
	List(ctx context.Context, prefix string) iter.Seq2[Entry, error]
	// Delete removes a key that has the given revision. Otherwise the error is ErrConflict, or ErrNoKey if the key does
	// not exist.
	Delete(ctx context.Context, key string, when Revision) error
}

// A Revision identifies one value of a key. A KV never uses it twice for the same key.
type Revision = backend.Revision

// None is the revision of a key that does not exist.
const None = backend.None

// A Value is the value of a key.
type Value struct {
	Entry
	// Data is not changed by callers.
	Data []byte
}

// An Entry is an entry of a list.
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
