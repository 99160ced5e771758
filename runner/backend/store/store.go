package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/deckhand-dev/deckhand/internal/shared/clock"
	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/internal/backend/memlimit"
)

// DefaultFile is how large a file may be unless Options say otherwise.
const DefaultFile = 2 << 20

// maxListed is how many files may be below a directory that is listed.
const maxListed = 20_000

// Options bound a Store; the zero value is the defaults.
type Options struct {
	// File is the most bytes that one file has.
	File int64
}

// A Store is a [backend.Driver] over a KV.
type Store struct {
	kv   KV
	file int64
}

var _ backend.Driver = (*Store)(nil)

// New makes a driver of what a KV keeps.
func New(kv KV, o Options) *Store {
	if o.File == 0 {
		o.File = DefaultFile
	}
	return &Store{kv: kv, file: o.File}
}

// checkName returns why a path cannot be a key, or nil.
func checkName(name string) error {
	if !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return backend.ErrBadName
	}
	return nil
}

// Resolve implements [backend.Driver]: there are no links.
func (*Store) Resolve(_ context.Context, name string) (string, error) { return name, checkName(name) }

// Open implements [backend.Driver]. Files are small: it holds the whole.
func (s *Store) Open(ctx context.Context, name string) (*backend.File, error) {
	release, err := s.hold(ctx)
	if err != nil {
		return nil, err
	}
	v, err := s.get(ctx, name)
	if err != nil {
		release()
		return nil, err
	}
	return &backend.File{ReadCloser: &content{*bytes.NewReader(v.Data), release}, Size: v.Size, Revision: v.Revision}, nil
}

// hold acquires the memory for a file that is read from the KV. Those of a Memory
// are in memory already.
func (s *Store) hold(ctx context.Context) (release func(), err error) {
	if _, is := s.kv.(*Memory); is {
		return func() {}, ctx.Err()
	}
	return memlimit.Stores.Acquire(ctx, s.file)
}

// A content is that of a file, in memory until it is closed.
type content struct {
	bytes.Reader
	release func()
}

// Close implements [io.Closer].
func (c *content) Close() error {
	c.release()
	return nil
}

var _ io.ReadCloser = (*content)(nil)

// get returns a file, or the error that says what is there instead.
func (s *Store) get(ctx context.Context, key string) (Value, error) {
	if err := checkName(key); err != nil {
		return Value{}, err
	}
	if key == "." {
		return Value{}, first(ctx.Err(), backend.ErrIsDir)
	}
	v, err := s.kv.Get(ctx, key)
	if errors.Is(err, ErrNoKey) {
		return Value{}, s.absent(ctx, key)
	}
	if err != nil {
		return Value{}, err
	}
	if v.Size > s.file { // it was written by a Store with another bound
		return Value{}, &backend.TooLargeError{Size: v.Size, Limit: s.file}
	}
	return v, nil
}

// absent says what a path is that is no file: a directory, below a file, or
// nothing.
func (s *Store) absent(ctx context.Context, key string) error {
	for _, err := range s.kv.List(ctx, key+"/") {
		return first(err, backend.ErrIsDir)
	}
	for dir := path.Dir(key); dir != "."; dir = path.Dir(dir) {
		_, err := s.kv.Get(ctx, dir)
		switch {
		case err == nil:
			return backend.ErrNotDir
		case !errors.Is(err, ErrNoKey):
			return err
		}
	}
	return first(ctx.Err(), backend.ErrNotFound)
}

// Write implements [backend.Driver].
func (s *Store) Write(ctx context.Context, name string, data []byte, when backend.Revision) error {
	if err := checkName(name); err != nil {
		return err
	}
	if size := int64(len(data)); size > s.file {
		return &backend.TooLargeError{Size: size, Limit: s.file}
	}
	_, err := s.kv.Put(ctx, name, data, when)
	switch {
	case errors.Is(err, ErrFull):
		err = fmt.Errorf("%w: %w", backend.ErrNoSpace, err)
	case errors.Is(err, ErrConflict):
		err = fmt.Errorf("%w: %w", backend.ErrChanged, err)
	}
	return err
}

// List implements [backend.Driver]. It reads the entries of all files below the
// directory.
func (s *Store) List(ctx context.Context, dir string) ([]backend.Info, error) {
	entries, err := s.below(ctx, dir)
	if err != nil {
		return nil, err
	}
	byName := map[string]backend.Info{}
	for _, e := range entries {
		name, _, deeper := strings.Cut(strings.TrimPrefix(e.Key, prefixOf(dir)), "/")
		info := backend.Info{Path: path.Join(dir, name), Dir: deeper, ModTime: e.ModTime}
		if !deeper {
			info.Size = e.Size
		}
		old, known := byName[name]
		switch {
		case !known, old.Dir && !deeper: // a file goes before a directory of its name
			byName[name] = info
		case old.Dir && deeper && old.ModTime.Before(e.ModTime):
			byName[name] = info
		}
	}
	infos := make([]backend.Info, 0, len(byName))
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		infos = append(infos, byName[name])
	}
	return infos, nil
}

// below lists the files below a directory. An empty one is there only as the
// root.
func (s *Store) below(ctx context.Context, dir string) ([]Entry, error) {
	if err := checkName(dir); err != nil {
		return nil, err
	}
	var found []Entry
	for e, err := range s.kv.List(ctx, prefixOf(dir)) {
		switch {
		case err != nil:
			return nil, err
		case len(found) == maxListed:
			return nil, fmt.Errorf("%w: it has more than %d files", backend.ErrTooLarge, maxListed)
		}
		found = append(found, e)
	}
	if len(found) > 0 || dir == "." {
		return found, ctx.Err()
	}
	_, err := s.get(ctx, dir)
	if err == nil {
		err = backend.ErrNotDir
	}
	return nil, err
}

// prefixOf is what the keys below a directory begin with.
func prefixOf(dir string) string {
	if dir == "." {
		return ""
	}
	return dir + "/"
}

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

// Default limits of a Memory.
const (
	DefaultBytes = 64 << 20
	DefaultKeys  = 10_000
)

// MemoryOptions bound a Memory; the zero value is the defaults.
type MemoryOptions struct {
	// Bytes is the most that all keys and values have together, Keys how many
	// there are.
	Bytes int64
	Keys  int
	// Now dates the values.
	Now func() time.Time
}

// A Memory is a KV that is gone with the process.
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

// first is the first error that is one.
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
