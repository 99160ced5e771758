//go:build !linux

package disk

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"
)

// A beneath looks for links before it opens a path. A link that is created in
// between is not noticed: runners run on Linux, and this is for development.
type beneath struct{}

// noLinks fails if a directory in a path is a link.
func (t *tree) noLinks(name string) error {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		info, err := t.root.Lstat(dir)
		if err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return &fs.PathError{Op: "open", Path: name, Err: syscall.ELOOP}
		}
	}
	return nil
}

// lstat describes the entry at a path. A link at its end is described as a link.
func (t *tree) lstat(name string) (status, error) {
	if err := t.noLinks(name); err != nil {
		return status{}, err
	}
	return statusOf(t.root.Lstat(name))
}

// statAt describes the entry at a path below an open directory. It follows links on the way, but not at the end.
func statAt(dir *os.File, name string) (status, error) {
	return statusOf(os.Lstat(filepath.Join(dir.Name(), name)))
}

func statusOf(info fs.FileInfo, err error) (status, error) {
	if err != nil {
		return status{}, err
	}
	return status{mode: info.Mode(), size: info.Size(), modTime: info.ModTime()}, nil
}

// A rawFile is a file that is read.
type rawFile struct{ *os.File }

func (t *tree) openRaw(name string, flags int) (rawFile, error) {
	f, err := t.open(name, flags, 0)
	return rawFile{f}, err
}

func (f rawFile) stat() (status, error) { return statusOf(f.Stat()) }

// open opens the entry at a path.
func (t *tree) open(name string, flags int, perm uint32) (*os.File, error) {
	if err := t.noLinks(path.Join(name, "x")); err != nil {
		return nil, err
	}
	return t.root.OpenFile(name, flags, fs.FileMode(perm))
}

func (t *tree) mkdir(name string, perm uint32) error {
	if err := t.noLinks(name); err != nil {
		return err
	}
	return t.root.Mkdir(name, fs.FileMode(perm))
}

func (t *tree) remove(name string) error {
	if err := t.noLinks(name); err != nil {
		return err
	}
	return t.root.Remove(name)
}

// rename renames a file, and replaces an existing one.
func (t *tree) rename(from, to string) error {
	if err := t.noLinks(from); err != nil {
		return err
	}
	if err := t.noLinks(to); err != nil {
		return err
	}
	return t.root.Rename(from, to)
}
