package workspace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/workspace/git"
)

const (
	// copyChunk is how much of a file is copied before the copy looks at its context, in bytes.
	copyChunk = 32 << 20
	// blockSize is the minimum size of a file or directory on a file system, in bytes.
	blockSize = 4096
)

// A treeCopy copies directories of another Run. Files, directories and links are copied, with modes and the times of
// files; links are never followed. The files belong to the user of this process. Devices, sockets and pipes are left out.
// Several names of one file become several files.
type treeCopy struct {
	// limit bounds the files of one directory in bytes, of which each takes whole blocks; zero: no bound.
	limit int64
	// progress is called for each value of tick.
	progress func()
	tick     <-chan time.Time

	used    int64 // of limit
	files   int
	bytes   int64
	leftOut git.Paths // what is neither a file nor a directory nor a link
}

// A pair is a directory, and the directory that its content is copied to.
type pair struct {
	from, to *os.Root
	path     string // for messages
}

// copy copies the content of a directory, as far as keep returns true for its entries.
func (c *treeCopy) copy(ctx context.Context, p pair, keep func(name string) bool) error {
	if strings.Count(p.path, "/") > maxDepth {
		return git.Refused("its directories are more than %d deep. Set continueFrom.workspace to Fresh.", maxDepth)
	}
	dir, err := p.from.OpenFile(".", dirFlags, 0)
	if err != nil {
		return &copyError{p.path, err}
	}
	defer dir.Close()
	for name, err := range git.Names(dir) {
		if err != nil {
			return &copyError{p.path, err}
		}
		if keep != nil && !keep(name) {
			continue
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
		if err := c.entry(ctx, p, name); err != nil {
			return err
		}
	}
	return nil
}

// A copyError is an error of one file.
type copyError struct {
	path string
	err  error
}

func (e *copyError) Error() string { return fmt.Sprintf("copying %q: %v", e.path, e.err) }

func (e *copyError) Unwrap() error { return e.err }

// entry copies one entry of a directory.
func (c *treeCopy) entry(ctx context.Context, p pair, name string) error {
	at := path.Join(p.path, name)
	info, err := p.from.Lstat(name)
	if err != nil {
		return &copyError{at, err}
	}
	c.report()
	switch kind := info.Mode().Type(); kind {
	case fs.ModeDir:
		return c.subdirectory(ctx, p, info)
	case 0:
		err = c.file(ctx, p, info)
	case fs.ModeSymlink:
		err = c.link(p, name)
	default:
		c.leftOut = c.leftOut.With(at)
		return nil
	}
	if _, refused := errors.AsType[*RefusedError](err); err == nil || refused {
		return err
	}
	return &copyError{at, err}
}

// report calls progress if it is time.
func (c *treeCopy) report() {
	select {
	case <-c.tick:
		c.progress()
	default:
	}
}

// subdirectory copies a directory. Its mode is set at the end, because it may be read-only.
func (c *treeCopy) subdirectory(ctx context.Context, p pair, info fs.FileInfo) error {
	at := path.Join(p.path, info.Name())
	if err := c.take(blockSize); err != nil {
		return err
	}
	if err := p.to.Mkdir(info.Name(), info.Mode().Perm()|0o700); err != nil {
		return &copyError{at, err}
	}
	from, err := p.from.OpenRoot(info.Name())
	if err != nil {
		return &copyError{at, err}
	}
	defer from.Close()
	to, err := p.to.OpenRoot(info.Name())
	if err != nil {
		return &copyError{at, err}
	}
	defer to.Close()
	if err := c.copy(ctx, pair{from: from, to: to, path: at}, nil); err != nil {
		return err
	}
	made, err := to.Lstat(".")
	if err == nil { // setgid, if it came from above, stays
		err = to.Chmod(".", made.Mode()&^fs.ModePerm|info.Mode().Perm())
	}
	if err != nil {
		return &copyError{at, err}
	}
	return nil
}

// link copies a link as its text, wherever it leads: no part of the runner follows links out of the workspace.
func (c *treeCopy) link(p pair, name string) error {
	if err := c.take(blockSize); err != nil {
		return err
	}
	target, err := p.from.Readlink(name)
	if err != nil {
		return err
	}
	c.files++
	return p.to.Symlink(target, name)
}

// file copies a regular file.
func (c *treeCopy) file(ctx context.Context, p pair, info fs.FileInfo) error {
	from, err := p.from.OpenFile(info.Name(), os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return err
	}
	defer from.Close()
	if info, err = from.Stat(); err != nil || !info.Mode().IsRegular() {
		return errors.Join(err, fs.ErrInvalid)
	}
	to, err := p.to.OpenFile(info.Name(), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = c.content(ctx, from, to, info.Size())
	if err := errors.Join(err, to.Chmod(info.Mode().Perm()), to.Close()); err != nil {
		return err
	}
	c.files++
	return p.to.Chtimes(info.Name(), time.Time{}, info.ModTime())
}

// content copies what a file holds. Holes stay holes: a file without data may be larger than any disk.
func (c *treeCopy) content(ctx context.Context, from, to *os.File, size int64) error {
	before := c.used
	for at := int64(0); at < size; {
		start, end, err := dataAt(from, at, size)
		if err != nil {
			return err
		}
		if at = end; start == end {
			continue
		}
		if err := c.extent(ctx, from, to, start, end); err != nil {
			return err
		}
	}
	if c.used == before {
		return errors.Join(c.take(0), to.Truncate(size))
	}
	return to.Truncate(size)
}

// extent copies a part of a file.
func (c *treeCopy) extent(ctx context.Context, from, to *os.File, start, end int64) error {
	_, err := from.Seek(start, io.SeekStart)
	if err == nil {
		_, err = to.Seek(start, io.SeekStart)
	}
	for at := start; err == nil && at < end; at += copyChunk {
		n := min(copyChunk, end-at)
		if err = errors.Join(context.Cause(ctx), c.take(n)); err == nil {
			_, err = io.CopyN(to, from, n)
			c.bytes += n
			c.report()
		}
	}
	return err
}

// take counts space before it is used; 0: that of an empty file.
func (c *treeCopy) take(size int64) error {
	c.used += max((size+blockSize-1)/blockSize, 1) * blockSize
	if c.limit > 0 && c.used > c.limit {
		return git.Refused("its files need more than the %d bytes of workspace.size, of which each takes %d at least. Raise workspace.size of the Agent, or set continueFrom.workspace to Fresh.", c.limit, blockSize)
	}
	return nil
}

// removeTree removes a file or directory, also directories that are read-only.
func removeTree(root *os.Root, name string) error {
	err := root.RemoveAll(name)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	err = fs.WalkDir(root.FS(), name, func(at string, e fs.DirEntry, err error) error {
		if err == nil && e.IsDir() {
			err = root.Chmod(at, 0o700)
		}
		return err
	})
	return errors.Join(err, root.RemoveAll(name))
}
