package git

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/storage/filesystem"
)

const (
	// maxInMemory is the size from which an object is read piece by piece, in bytes.
	maxInMemory = 1 << 20
	// maxCache bounds the objects that are kept in memory.
	maxCache = 16 * cache.MiByte
	// maxTree bounds a tree or a commit, which are read whole, in bytes.
	maxTree = 64 << 20
	// maxPeel is how many tags of tags are followed.
	maxPeel = 10
)

// A Store is a bare repository. Nothing of its configuration is read.
type Store struct {
	dir     string
	storage *filesystem.Storage
}

// create creates an empty bare repository.
func create(dir string) error {
	for _, sub := range []string{"objects/pack", "objects/info", "refs/heads"} {
		if err := os.MkdirAll(dir+"/"+sub, 0o700); err != nil {
			return fmt.Errorf("making the repository: %w", err)
		}
	}
	files := map[string]string{"HEAD": "ref: refs/heads/main\n", "config": "[core]\n\trepositoryformatversion = 0\n\tbare = true\n"}
	for name, text := range files {
		if err := os.WriteFile(dir+"/"+name, []byte(text), 0o600); err != nil {
			return fmt.Errorf("making the repository: %w", err)
		}
	}
	return nil
}

// Open opens the bare repository in a directory, which only trusted processes may write to.
func Open(dir string) (*Store, error) {
	if _, err := os.Stat(dir + "/objects"); err != nil {
		return nil, fmt.Errorf("opening the repository: %w", err)
	}
	options := filesystem.Options{KeepDescriptors: true, LargeObjectThreshold: maxInMemory}
	storage := filesystem.NewStorageWithOptions(osfs.New(dir, osfs.WithBoundOS()), cache.NewObjectLRU(maxCache), options)
	return &Store{dir: dir, storage: storage}, nil
}

// Close closes the files.
func (s *Store) Close() error {
	if err := s.storage.Close(); err != nil {
		return fmt.Errorf("closing the repository: %w", err)
	}
	return nil
}

// readAll returns an object of at most maxTree bytes.
func (s *Store) readAll(kind plumbing.ObjectType, h plumbing.Hash) ([]byte, error) {
	r, size, err := s.object(kind, h)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if size > maxTree {
		return nil, Refused("The repository has a %s of %d bytes (%s); that is no repository to work with.", kind, size, h)
	}
	return io.ReadAll(r)
}

// object opens an object to be read.
func (s *Store) object(kind plumbing.ObjectType, h plumbing.Hash) (io.ReadCloser, int64, error) {
	o, err := s.storage.EncodedObject(kind, h)
	if errors.Is(err, plumbing.ErrObjectNotFound) {
		return nil, 0, Refused("The repository has no %s %s, which its commit names: see what \"git fsck\" says of it.", kind, h)
	}
	if err != nil {
		return nil, 0, fmt.Errorf("reading %s %s: %w", kind, h, err)
	}
	r, err := o.Reader()
	if err != nil {
		return nil, 0, fmt.Errorf("reading %s %s: %w", kind, h, err)
	}
	return r, o.Size(), nil
}

// peel follows tags to the commit that is tagged.
func (s *Store) peel(h plumbing.Hash) (plumbing.Hash, error) {
	for range maxPeel {
		o, err := s.storage.EncodedObject(plumbing.AnyObject, h)
		if err != nil {
			return h, fmt.Errorf("reading %s: %w", h, err)
		}
		switch o.Type() {
		case plumbing.CommitObject:
			return h, nil
		case plumbing.TagObject:
			data, err := s.readAll(plumbing.TagObject, h)
			if err != nil {
				return h, err
			}
			h = plumbing.NewHash(field(data, "object"))
		default:
			return h, Refused("The revision is a %s, not a commit: name a branch, a tag of a commit or a commit.", o.Type())
		}
	}
	return h, Refused("The revision is a tag of a tag of a tag, too often: name the commit.")
}

// field returns a header of a commit or tag; empty if it does not exist.
func field(data []byte, name string) string {
	scan := bufio.NewScanner(bytes.NewReader(data))
	for scan.Scan() && scan.Text() != "" {
		if key, value, _ := strings.Cut(scan.Text(), " "); key == name {
			return value
		}
	}
	return ""
}

// abbreviated finds the one commit or tag whose name begins like this.
func (s *Store) abbreviated(name string) (plumbing.Hash, error) {
	if len(name) == 40 {
		h := plumbing.NewHash(name)
		if s.storage.HasEncodedObject(h) != nil {
			return h, Refused("The repository has no commit %s in any of its branches and tags.", name)
		}
		return h, nil
	}
	prefix, err := hex.DecodeString(name[:len(name)&^1])
	if err != nil {
		return plumbing.ZeroHash, fmt.Errorf("reading the commit %s: %w", name, err)
	}
	hashes, err := s.storage.HashesWithPrefix(prefix)
	if err != nil {
		return plumbing.ZeroHash, fmt.Errorf("looking for the commit %s: %w", name, err)
	}
	var found []plumbing.Hash
	for _, h := range hashes {
		if strings.HasPrefix(h.String(), name) && s.isCommit(h) {
			found = append(found, h)
		}
	}
	switch len(found) {
	case 0:
		return plumbing.ZeroHash, Refused("The repository has no branch, tag or commit %q: use an existing one.", name)
	case 1:
		return found[0], nil
	default:
		return plumbing.ZeroHash, Refused("The repository has %d commits that begin with %q: write more of the name.", len(found), name)
	}
}

func (s *Store) isCommit(h plumbing.Hash) bool {
	o, err := s.storage.EncodedObject(plumbing.AnyObject, h)
	return err == nil && (o.Type() == plumbing.CommitObject || o.Type() == plumbing.TagObject)
}

// volumeFull turns the error of a full disk into a RefusedError.
func volumeFull(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return Refused("The volume is full (%s): give the workspace a larger one, or clone less of the history.", printable(err.Error()))
	}
	return err
}
