package store

import (
	"context"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/deckhand-dev/deckhand/internal/shared/clock"
)

// Default limits of a Memory.
const (
	DefaultBytes = 64 << 20
	DefaultKeys  = 10_000
)

// MemoryOptions bound a Memory; the zero value is the defaults.
type MemoryOptions struct {
	// Bytes is the maximum size of all keys and values together, Keys the maximum number of keys.
	Bytes int64
	Keys  int
	// Now dates the values.
	Now func() time.Time
}

// A Memory is a KV in memory.
type Memory struct {
	opts MemoryOptions

	mu     sync.RWMutex
	values map[string]Value
	bytes  int64
	last   int64 // revision given out
}

var _ KV = (*Memory)(nil)

// NewMemory makes an empty one.
func NewMemory(o MemoryOptions) *Memory {
	if o.Bytes == 0 {
		o.Bytes = DefaultBytes
	}
	if o.Keys == 0 {
		o.Keys = DefaultKeys
	}
	o.Now = clock.Or(o.Now)
	return &Memory{opts: o, values: map[string]Value{}}
}

// Get implements [KV].
func (m *Memory) Get(ctx context.Context, key string) (Value, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	v, ok := m.values[key]
	if !ok {
		return Value{}, first(ctx.Err(), ErrNoKey)
	}
	return v, ctx.Err()
}

// first returns the first error that is not nil.
func first(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// Put implements [KV].
func (m *Memory) Put(ctx context.Context, key string, data []byte, when Revision) (Revision, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	old, there := m.values[key]
	grown := int64(len(data)) - int64(len(old.Data))
	if !there {
		grown += int64(len(key))
	}
	switch {
	case ctx.Err() != nil:
		return None, ctx.Err()
	case old.Revision != when:
		return None, ErrConflict
	case grown > 0 && m.bytes+grown > m.opts.Bytes, !there && len(m.values) == m.opts.Keys:
		return None, ErrFull
	}
	m.last++
	m.bytes += grown
	e := Entry{Key: key, Size: int64(len(data)), Revision: Revision(strconv.FormatInt(m.last, 10)), ModTime: m.opts.Now()}
	m.values[key] = Value{Entry: e, Data: slices.Clone(data)}
	return e.Revision, nil
}

// List implements [KV].
func (m *Memory) List(ctx context.Context, prefix string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for _, e := range m.entries(prefix) {
			if err := ctx.Err(); err != nil {
				yield(Entry{}, err)
				return
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}

func (m *Memory) entries(prefix string) []Entry {
	m.mu.RLock()
	defer m.mu.RUnlock()
	var found []Entry
	for key, v := range m.values {
		if strings.HasPrefix(key, prefix) {
			found = append(found, v.Entry)
		}
	}
	return found
}

// Delete implements [KV].
func (m *Memory) Delete(ctx context.Context, key string, when Revision) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	old, there := m.values[key]
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case !there:
		return ErrNoKey
	case old.Revision != when:
		return ErrConflict
	}
	delete(m.values, key)
	m.bytes -= int64(len(key)) + old.Size
	return nil
}
