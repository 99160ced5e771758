package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"syscall"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/index"
)

const (
	// maxDepth is how deep directories may lie in each other.
	maxDepth = 200
	// maxCheckout is how many files, directories and links a commit may have.
	maxCheckout = 1_000_000
	// blockSize is the minimum size of an entry on a file system, in bytes.
	blockSize = 4096
	// maxLink bounds the text of a symbolic link, in bytes.
	maxLink = 4096
	// maxPath bounds the path of an entry, in bytes: programs cannot open a longer one.
	maxPath = 4095
	// maxPathBytes bounds the paths of all files together, which are in memory until the index is
	// written, in bytes.
	maxPathBytes = 64 << 20
)

// A Target is where the files of a commit are written to.
type Target struct {
	// Root and Under are an empty directory.
	Root  *os.Root
	Under string
	// MaxBytes bounds the files, directories and links, and the files of .git. Each counts as whole blocks, and as at
	// least one. Zero: no bound.
	MaxBytes int64
}

// A checkout writes the files of a commit.
type checkout struct {
	store *Store
	root  *os.Root
	under string // the directory in root that they are written to
	index index.Index

	limit   int64 // as Target.MaxBytes
	used    int64
	entries int // files, directories and links
	paths   int // bytes of the paths in the index
	// missing are the files whose content the commit does not have.
	missing Missing
}

// Missing is what a workspace lacks of its repository.
type Missing struct {
	// Pointers are files of which the repository has only the pointer of Git LFS.
	Pointers Paths `json:"pointers,omitzero"`
	// Submodules are empty directories.
	Submodules Paths `json:"submodules,omitzero"`
}

// CheckOut writes the files of a clone to an empty directory, byte for byte, with a separate .git: a repository at the
// same commit, with the same history, whose origin is the URL. It shares nothing with the Store. Submodules become
// empty directories, and files of Git LFS stay pointers.
func (s *Store) CheckOut(ctx context.Context, to Target, h Head, url string) (Missing, error) {
	data, err := s.readAll(plumbing.CommitObject, plumbing.NewHash(h.Commit))
	if err != nil {
		return Missing{}, err
	}
	c := &checkout{store: s, root: to.Root, under: to.Under, limit: to.MaxBytes, index: index.Index{Version: 2}}
	if err := c.directory(ctx, "", plumbing.NewHash(field(data, "tree")), attributes{}); err != nil {
		return Missing{}, during("checking out "+h.Commit, volumeFull(err))
	}
	if err := c.dotGit(ctx, h, url); err != nil {
		return Missing{}, during("making the repository of the workspace", volumeFull(err))
	}
	return c.missing, nil
}

// directory writes one tree. Names come from the repository and are not trusted.
func (c *checkout) directory(ctx context.Context, dir string, tree plumbing.Hash, above attributes) error {
	if depth(dir) > maxDepth {
		return Refused("The repository has directories more than %d deep.", maxDepth)
	}
	entries, err := c.store.tree(tree)
	if err != nil {
		return err
	}
	if name, is := repeated(entries); is {
		return Refused("The repository has the name %q more than once in %q, which git does not allow: commit the directory again with git.", printable(name), printable("/"+dir))
	}
	attrs, err := c.store.withAttributes(above, dir, entries)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := checkName(dir, e.name); err != nil {
			return err
		}
		name := path.Join(dir, e.name)
		if err := c.entry(ctx, name, e, attrs); err != nil {
			return unfit(name, err)
		}
	}
	return nil
}

// checkName refuses an entry of a directory whose name or path cannot be used.
func checkName(dir, name string) error {
	if !isName(name) {
		return Refused("The repository has a file of the name %q in %q, which git does not allow: rename it there.", printable(name), printable("/"+dir))
	}
	if at := path.Join(dir, name); len(at) > maxPath {
		return Refused("The repository has a path of more than %d bytes, which programs cannot open: %q. Rename its directories there.", maxPath, printable("/"+at))
	}
	return nil
}

// permanentFaults are errors of system calls about a name or a content that the volume cannot store: another attempt
// would get the same error. A file system that ignores case already has another name (EEXIST, ENOTDIR, EISDIR), and
// some support no links (EPERM) or no large files.
var permanentFaults = []syscall.Errno{
	syscall.ENAMETOOLONG, syscall.EILSEQ, syscall.EINVAL, syscall.EEXIST, syscall.ENOTDIR, syscall.EISDIR, syscall.ELOOP, syscall.EPERM,
	syscall.EOPNOTSUPP, syscall.EFBIG, syscall.EMLINK,
}

// unfit turns the error of an entry that the volume cannot hold into a RefusedError.
func unfit(name string, err error) error {
	if _, refused := errors.AsType[*RefusedError](err); refused {
		return err
	}
	var cause error
	inPath, isPath := errors.AsType[*fs.PathError](err)
	inLink, isLink := errors.AsType[*os.LinkError](err)
	switch {
	case isPath:
		cause = inPath.Err
	case isLink:
		cause = inLink.Err
	default:
		return err
	}
	if code, is := errors.AsType[syscall.Errno](cause); is && !slices.Contains(permanentFaults, code) || errors.Is(cause, fs.ErrClosed) {
		return err
	}
	return Refused("The volume of the workspace cannot hold %q of the repository (%v): rename or remove it there.", printable("/"+name), cause)
}

// repeated returns a name that several entries of a tree have.
func repeated(entries []entry) (string, bool) {
	seen := make(map[string]bool, len(entries))
	for _, e := range entries {
		if seen[e.name] {
			return e.name, true
		}
		seen[e.name] = true
	}
	return "", false
}

func (c *checkout) entry(ctx context.Context, name string, e entry, attrs attributes) error {
	at := path.Join(c.under, name)
	switch {
	case e.mode == filemode.Dir:
		if err := c.makeDir(at); err != nil {
			return err
		}
		return c.directory(ctx, name, e.hash, attrs)
	case e.mode == filemode.Submodule:
		c.missing.Submodules = c.missing.Submodules.With(name)
		return errors.Join(c.record(name, e, nil), c.makeDir(at))
	case e.mode == filemode.Symlink:
		return c.link(name, e)
	case e.isFile():
		if err := c.notePointer(name, e, attrs); err != nil {
			return err
		}
		return c.file(name, e)
	default:
		return Refused("The repository has %q with the mode %o, which git does not know.", printable(name), uint32(e.mode))
	}
}

// take counts an entry with a content of a size, before it is written. A few objects can
// be a tree of any number of directories, which take space and inodes without a file.
func (c *checkout) take(size int64) error {
	if c.entries++; c.entries > maxCheckout {
		return Refused("The repository has more than %d files and directories.", maxCheckout)
	}
	if c.limit == 0 {
		return nil
	}
	if size > c.limit-c.used { // also if rounding it up would overflow
		return c.tooLarge()
	}
	if c.used += max(size+blockSize-1, blockSize) / blockSize * blockSize; c.used > c.limit {
		return c.tooLarge()
	}
	return nil
}

func (c *checkout) makeDir(at string) error {
	if err := c.take(0); err != nil {
		return err
	}
	return MakeDir(c.root, at)
}

func (c *checkout) tooLarge() error {
	return Refused("The repository does not fit into the workspace: its first %d files and directories need more than the %d bytes of workspace.size, of which each takes %d at least. Raise workspace.size of the Agent, or use a smaller repository.", c.entries, c.limit, blockSize)
}

// notePointer records a file of which the commit has only the pointer.
func (c *checkout) notePointer(name string, e entry, attrs attributes) error {
	if attrs.filter(name) != lfsFilter {
		return nil
	}
	pointer, err := c.store.isPointer(e.hash)
	if pointer {
		c.missing.Pointers = c.missing.Pointers.With(name)
	}
	return err
}

func (c *checkout) link(name string, e entry) error {
	r, size, err := c.store.object(plumbing.BlobObject, e.hash)
	if err != nil {
		return err
	}
	defer r.Close()
	if size > maxLink {
		return Refused("The repository has a symbolic link, %q, that is longer than %d bytes.", printable(name), maxLink)
	}
	target, err := io.ReadAll(r)
	switch {
	case err != nil:
		return fmt.Errorf("reading %s: %w", name, err)
	case len(target) == 0:
		return Refused("The repository has a symbolic link, %q, without a target: give it one there, or remove it.", printable("/"+name))
	case bytes.IndexByte(target, 0) >= 0:
		return Refused("The repository has a symbolic link, %q, with a NUL in its target: correct or remove it there.", printable("/"+name))
	}
	at := path.Join(c.under, name)
	if err := c.take(size); err != nil {
		return err
	}
	if err := c.root.Symlink(string(target), at); err != nil {
		return err
	}
	return c.written(name, e)
}

func (c *checkout) file(name string, e entry) error {
	r, size, err := c.store.object(plumbing.BlobObject, e.hash)
	if err != nil {
		return err
	}
	defer r.Close()
	if err := c.take(size); err != nil {
		return err
	}
	perm := fs.FileMode(0o664)
	if e.mode == filemode.Executable {
		perm = 0o775
	}
	if err := WriteFile(c.root, path.Join(c.under, name), r, perm); err != nil {
		return err
	}
	return c.written(name, e)
}

// written records a file in the index.
func (c *checkout) written(name string, e entry) error {
	info, err := c.root.Lstat(path.Join(c.under, name))
	if err != nil {
		return err
	}
	return c.record(name, e, info)
}

func (c *checkout) record(name string, e entry, info fs.FileInfo) error {
	if c.paths += len(name); c.paths > maxPathBytes {
		return Refused("The paths of the files of the repository have more than %d MiB in all: fetch a smaller one.", maxPathBytes>>20)
	}
	line := &index.Entry{Name: name, Mode: e.mode, Hash: e.hash}
	if e.mode == filemode.Deprecated {
		line.Mode = filemode.Regular
	}
	if info != nil {
		line.ModifiedAt, line.Size = info.ModTime(), uint32(info.Size()) //nolint:gosec // git keeps the lower 32 bits
	}
	c.index.Entries = append(c.index.Entries, line)
	return nil
}

// MakeDir makes a directory that the group may write to, independent of the umask.
func MakeDir(root *os.Root, name string) error {
	if err := root.Mkdir(name, 0o775); err != nil {
		return err
	}
	info, err := root.Lstat(name)
	if err != nil {
		return err
	}
	return root.Chmod(name, info.Mode()|0o775) // setgid, if it came from above, stays
}

// WriteFile creates a file with exactly these permissions, independent of the umask. It fails if the name exists
// already.
func WriteFile(root *os.Root, name string, from io.Reader, perm fs.FileMode) error {
	f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, perm)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	return errors.Join(err, f.Chmod(perm), f.Close())
}
