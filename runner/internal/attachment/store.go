// Package attachment keeps the images and documents that a model is shown, and determines their types. Format and size
// in pixels are read from the first bytes of a file. Nothing is decoded: a small file that decompresses to gigabytes
// counts as an image with large dimensions, and malformed data does not reach a decoder in the process that holds the
// keys.
package attachment

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/deckhand-dev/deckhand/runner/step"
)

// MaxStored bounds all files of a Run, in bytes.
const MaxStored = 256 << 20

// A Store keeps the files of a Run, each under its digest. It is safe for concurrent use.
type Store struct {
	dir string // empty: they are in memory

	mu     sync.Mutex
	size   int64
	memory map[string][]byte
}

// Open opens the files in a directory, which is created if necessary; empty: they are kept in memory.
func Open(dir string) (*Store, error) {
	s := &Store{dir: dir, memory: map[string][]byte{}}
	if dir == "" {
		return s, nil
	}
	if err := os.MkdirAll(dir, 0o770); err != nil {
		return nil, fmt.Errorf("making the directory of images: %w", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("reading the directory of images: %w", err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			s.size += info.Size()
		}
	}
	return s, nil
}

// A FullError means that a Run keeps too many files.
type FullError struct{}

func (*FullError) Error() string {
	return fmt.Sprintf("the Run keeps %d MiB of images and documents already, and no more", MaxStored>>20)
}

// Add stores a file and returns a part that shows it. After it returns, the file survives a failure of the machine.
// Errors describe what is wrong with the file and what to do.
func (s *Store) Add(name string, data []byte) (step.Part, error) {
	part, err := inspect(name, data)
	if err != nil {
		return part, err
	}
	sum := sha256.Sum256(data)
	part.File.Digest = hex.EncodeToString(sum[:])
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.has(part.File) {
		return part, nil
	}
	if s.size+part.File.Size > MaxStored {
		return step.Part{}, &FullError{}
	}
	if s.dir == "" {
		s.memory[part.File.Digest] = data
	} else if err := write(filepath.Join(s.dir, part.File.Digest), data); err != nil {
		return step.Part{}, fmt.Errorf("it could not be kept: %w", err)
	}
	s.size += part.File.Size
	return part, nil
}

// has reports whether a file is kept whole.
func (s *Store) has(f *step.File) bool {
	if s.dir == "" {
		return s.memory[f.Digest] != nil
	}
	info, err := os.Lstat(filepath.Join(s.dir, f.Digest))
	return err == nil && info.Mode().IsRegular() && info.Size() == f.Size
}

// ReadFile implements [github.com/deckhand-dev/deckhand/runner/model.Files].
func (s *Store) ReadFile(digest string) ([]byte, error) {
	if len(digest) != hex.EncodedLen(sha256.Size) || strings.Trim(digest, "0123456789abcdef") != "" {
		return nil, fs.ErrNotExist // a journal is not trusted to name a path
	}
	data, err := s.read(digest)
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != digest {
		return nil, errors.New("the file has changed since it was shown")
	}
	return data, nil
}

func (s *Store) read(digest string) ([]byte, error) {
	if s.dir != "" {
		name := filepath.Join(s.dir, digest)
		info, err := os.Lstat(name)
		if err != nil {
			return nil, fmt.Errorf("reading an image: %w", err)
		}
		if !info.Mode().IsRegular() || info.Size() > MaxBytes {
			return nil, errors.New("reading an image: it is not a file of the Run")
		}
		return os.ReadFile(name) //nolint:wrapcheck // names the file
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if data, ok := s.memory[digest]; ok {
		return data, nil
	}
	return nil, fs.ErrNotExist
}

// write writes a file atomically and durably.
func write(name string, data []byte) error {
	f, err := os.OpenFile(name+".tmp", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o660)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(name+".tmp"))
	}
	if err := os.Rename(name+".tmp", name); err != nil {
		return err
	}
	dir, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
