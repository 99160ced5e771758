package workspace

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
)

// WriteArchive writes a file or directory below dir as a tar archive. The first entry is that
// file or directory; names of other entries are relative to it. Symbolic links are followed
// only to find name, and never out of dir; below it they are written as links. Devices,
// sockets and pipes are left out. Files in a directory that the user may not read are left out,
// too: the archive has all others, and the error names them.
func WriteArchive(w io.Writer, dir, name string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("opening the workspace: %w", err)
	}
	defer root.Close()
	info, err := root.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s does not exist in the workspace", name)
	case err != nil:
		return fmt.Errorf("reading %s: %w", name, err)
	}
	a := &archive{tar: tar.NewWriter(w)}
	if info.IsDir() {
		below, err := root.OpenRoot(name)
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		defer below.Close()
		a.root = below
		err = fs.WalkDir(below.FS(), ".", a.add)
		return errors.Join(err, a.tar.Close(), a.unreadableError())
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is neither a file nor a directory", name)
	}
	a.root = root
	return errors.Join(a.writeFile(name, path.Base(name)), a.tar.Close())
}

// An archive is a tar archive that is being written.
type archive struct {
	tar  *tar.Writer
	root *os.Root
	// unreadable are the names that the user may not read.
	unreadable []string
}

func (a *archive) unreadableError() error {
	const most = 10
	names := a.unreadable[:min(len(a.unreadable), most)]
	switch more := len(a.unreadable) - len(names); {
	case len(names) == 0:
		return nil
	case more > 0:
		return fmt.Errorf("permission denied to read %s and %d more; all other files are sent", strings.Join(names, ", "), more)
	}
	return fmt.Errorf("permission denied to read %s; all other files are sent", strings.Join(names, ", "))
}

// add writes what a walk finds. A file that was deleted meanwhile is left out.
func (a *archive) add(name string, entry fs.DirEntry, err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case errors.Is(err, fs.ErrPermission) && name != ".":
		a.unreadable = append(a.unreadable, name)
		return nil // a walk goes on beside a directory that it cannot read
	case err != nil:
		return err
	}
	switch kind := entry.Type(); {
	case kind.IsDir():
		return a.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: name + "/", Mode: 0o755})
	case kind == fs.ModeSymlink:
		target, err := a.root.Readlink(name)
		if err != nil {
			return nil //nolint:nilerr // it was deleted or replaced meanwhile
		}
		return a.tar.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777})
	case kind.IsRegular():
		err := a.writeFile(name, name)
		if errors.Is(err, fs.ErrPermission) {
			a.unreadable = append(a.unreadable, name)
			return nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// writeFile writes a file under another name. If it shrinks meanwhile, the archive is useless.
func (a *archive) writeFile(name, as string) error {
	f, err := a.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	header := &tar.Header{Typeflag: tar.TypeReg, Name: as, Size: info.Size(), Mode: int64(info.Mode().Perm()), ModTime: info.ModTime()}
	if err := a.tar.WriteHeader(header); err != nil {
		return err
	}
	if _, err := io.CopyN(a.tar, f, info.Size()); err != nil {
		return fmt.Errorf("%s changed while it was read: try again: %w", name, err)
	}
	return nil
}
