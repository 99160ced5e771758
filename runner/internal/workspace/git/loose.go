package git

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/objfile"
)

// temporaryPrefix begins the names of objects that are being written.
const temporaryPrefix = "tmp_obj_"

// put streams an object of a known size into the store and returns its name. An existing
// object is replaced, because a power failure may have left it incomplete.
func (s *Store) put(kind plumbing.ObjectType, size int64, from io.Reader) (plumbing.Hash, error) {
	f, err := os.CreateTemp(s.dir+"/objects", temporaryPrefix)
	if err != nil {
		return plumbing.ZeroHash, fmt.Errorf("writing an object: %w", err)
	}
	w := objfile.NewWriter(f)
	err = w.WriteHeader(kind, size)
	if err == nil {
		_, err = io.CopyN(w, from, size)
	}
	if err := errors.Join(err, w.Close(), f.Close()); err != nil {
		return plumbing.ZeroHash, errors.Join(err, os.Remove(f.Name()))
	}
	h := w.Hash()
	dir := filepath.Join(s.dir, "objects", h.String()[:2])
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return plumbing.ZeroHash, fmt.Errorf("writing an object: %w", err)
	}
	if err := os.Rename(f.Name(), filepath.Join(dir, h.String()[2:])); err != nil {
		return plumbing.ZeroHash, fmt.Errorf("writing an object: %w", err)
	}
	return h, nil
}

func (s *Store) putBytes(kind plumbing.ObjectType, data []byte) (plumbing.Hash, error) {
	h, err := s.put(kind, int64(len(data)), bytes.NewReader(data))
	return h, volumeFull(err)
}

// removeTemporary removes objects that an earlier process did not finish.
func (s *Store) removeTemporary() error {
	left, err := filepath.Glob(s.dir + "/objects/" + temporaryPrefix + "*")
	for _, name := range left {
		err = errors.Join(err, os.Remove(name))
	}
	return err
}
