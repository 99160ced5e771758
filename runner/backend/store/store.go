// Package store is a driver over a small key-value interface, for files that outlive a Run, such as an agent's
// memories.
//
// A database needs four methods (KV) to hold them; Memory holds them in the process. The keys are the paths of the
// files. A directory exists while a file is below it.
//
// What to know:
//   - Two writers of one file are distinguished by the revision of the KV: the second finds that the file has
//     changed since it was read.
//   - The Store lists a directory by listing all keys below it, so a search of a tree
//     lists as often as it has directories.
//   - A name is valid UTF-8 without control characters, because it is a key and
//     a line of a list.
//   - Two processes that at the same time make the file "a" and the file "a/b"
//     both succeed. Each is found by its name; a list shows the file.
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
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/internal/backend/memlimit"
)

// DefaultFile is the default maximum size of a file.
const DefaultFile = 2 << 20

// maxListed is the maximum number of files below a directory that is listed.
const maxListed = 20_000

// Options bound a Store; the zero value is the defaults.
type Options struct {
	// File is the maximum size of one file in bytes.
	File int64
}

// A Store is a [backend.Driver] over a KV.
type Store struct {
	kv   KV
	file int64
}

var _ backend.Driver = (*Store)(nil)

// New makes a driver for the files in a KV.
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

// hold acquires the memory for a file that is read from the KV. Files of a Memory are in memory already.
func (s *Store) hold(ctx context.Context) (release func(), err error) {
	if _, is := s.kv.(*Memory); is {
		return func() {}, ctx.Err()
	}
	return memlimit.Stores.Acquire(ctx, s.file)
}

// A content is the content of a file, in memory until it is closed.
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

// get returns a file, or the error for what exists instead.
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

// absent returns the error for a path without a file: it is a directory, below a file, or does not exist.
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

// below lists the files below a directory. Only the root exists without files.
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

// prefixOf returns the prefix of the keys below a directory.
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
