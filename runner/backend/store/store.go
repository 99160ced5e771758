package store

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"path"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/deckhand-dev/deckhand/internal/clock"
	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/internal/backend/memlimit"
)

// DefaultFile is how large a file may be unless Options say otherwise.
const DefaultFile = 2 << 20

// maxListed is how many files a directory, or what is searched, may have.
const maxListed = 20_000

// tries is how often a change is made again because somebody else was faster.
const tries = 8

// Options bound a Store; the zero value is the defaults.
type Options struct {
	// File is the most bytes that one file has.
	File int64
	// Now measures how long searches take.
	Now func() time.Time
}

// A Store is a backend over a KV.
type Store struct {
	kv    KV
	file  int64
	now   func() time.Time
	seed  maphash.Seed
	locks [64]sync.Mutex
}

var _ backend.Backend = (*Store)(nil)

// New makes a backend of what a KV keeps.
func New(kv KV, o Options) *Store {
	if o.File == 0 {
		o.File = DefaultFile
	}
	o.Now = clock.Or(o.Now)
	return &Store{kv: kv, file: o.File, now: o.Now, seed: maphash.MakeSeed()}
}

// clean returns the path as a key.
func clean(name string) (string, error) {
	name, err := backend.Clean(name)
	if err != nil {
		return "", err
	}
	if !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return "", backend.ErrBadName
	}
	return name, nil
}

// hold acquires the memory for up to n bytes that are read from the KV. Those of
// a Memory are in memory already.
func (s *Store) hold(ctx context.Context, n int64) (release func(), err error) {
	if _, is := s.kv.(*Memory); is {
		return func() {}, ctx.Err()
	}
	return memlimit.Contents.Acquire(ctx, min(n, s.file))
}

// Resolve implements [backend.Backend]: there are no links.
func (*Store) Resolve(ctx context.Context, name string) (string, error) {
	key, err := clean(name)
	if err = first(ctx.Err(), err); err != nil {
		return "", failed("resolve", name, err)
	}
	return key, nil
}

// lock makes the changes of one file follow one another within the process;
// between processes the revisions do.
func (s *Store) lock(key string) (unlock func()) {
	mu := &s.locks[maphash.String(s.seed, key)%uint64(len(s.locks))]
	mu.Lock()
	return mu.Unlock
}

// get returns a file, or the error that says what is there instead.
func (s *Store) get(ctx context.Context, key string) (Value, error) {
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
	if v.Size > s.file { // it was written by somebody with another bound
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

// below lists the files below a directory. An empty one is there only as the
// root.
func (s *Store) below(ctx context.Context, dir string) ([]Entry, error) {
	prefix := dir + "/"
	if dir == "." {
		prefix = ""
	}
	var found []Entry
	for e, err := range s.kv.List(ctx, prefix) {
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

// failed makes the error of an operation, with its kind. The errors of a
// context stay as they are.
func failed(op, name string, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if _, already := errors.AsType[*backend.PathError](err); already {
		return err
	}
	switch {
	case errors.Is(err, ErrFull):
		err = fmt.Errorf("%w: %w", backend.ErrNoSpace, err)
	case errors.Is(err, ErrConflict):
		err = fmt.Errorf("%w: %w", backend.ErrChanged, err)
	}
	return &backend.PathError{Op: op, Path: name, Err: err}
}
