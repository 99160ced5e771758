package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// A beneath is how the kernel opens a path without following links.
type beneath struct {
	// stepwise says that there is no openat2: the kernel is older than 5.6, or a
	// seccomp profile refuses it.
	stepwise atomic.Bool
}

// lstat describes what is at a path. A link at its end is described as such.
func (t *tree) lstat(name string) (fs.FileInfo, error) {
	f, err := t.open(name, unix.O_PATH|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	return info, errors.Join(err, f.Close())
}

// open opens what is at a path.
func (t *tree) open(name string, flags int, perm uint32) (*os.File, error) {
	fd, err := t.openFD(name, flags, perm)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	if flags&unix.O_DIRECTORY != 0 {
		// Where a file system does not tell the types of its entries, ReadDir asks for
		// them by the name of the directory.
		name = fmt.Sprintf("/proc/self/fd/%d", fd)
	}
	return os.NewFile(uintptr(fd), name), nil
}

func (t *tree) mkdir(name string, perm uint32) error {
	return t.in(name, func(dir int, base string) error { return unix.Mkdirat(dir, base, perm) })
}

func (t *tree) remove(name string) error {
	return t.in(name, func(dir int, base string) error { return unix.Unlinkat(dir, base, 0) })
}

// rename gives a file another name, and takes the place of what has it.
func (t *tree) rename(from, to string) error {
	return t.in(from, func(fromDir int, fromBase string) error {
		return t.in(to, func(toDir int, toBase string) error {
			return unix.Renameat(fromDir, fromBase, toDir, toBase)
		})
	})
}

// in opens the directory of a path and has do work in it.
func (t *tree) in(name string, do func(dir int, base string) error) error {
	fd, err := t.openFD(path.Dir(name), unix.O_PATH|unix.O_DIRECTORY, 0)
	if err == nil {
		err = do(fd, path.Base(name))
		_ = unix.Close(fd) // a directory has nothing to be flushed
	}
	if err != nil {
		return &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return nil
}

func (t *tree) openFD(name string, flags int, perm uint32) (fd int, err error) {
	raw, err := t.dir.SyscallConn()
	if err != nil {
		return -1, err
	}
	closed := raw.Control(func(root uintptr) { fd, err = t.openBeneath(int(root), name, flags|unix.O_CLOEXEC, perm) })
	if closed != nil {
		return -1, closed
	}
	return fd, err
}

func (t *tree) openBeneath(root int, name string, flags int, perm uint32) (int, error) {
	if !t.stepwise.Load() {
		fd, err := openat2(root, name, flags, perm)
		switch {
		case errors.Is(err, unix.ENOSYS):
			t.stepwise.Store(true)
		case errors.Is(err, unix.EPERM), errors.Is(err, unix.EINVAL), errors.Is(err, unix.EAGAIN):
			// Perhaps it is a seccomp profile that refuses. The steps show which.
		default:
			return fd, err
		}
	}
	return openStepwise(root, name, flags, perm)
}

func openat2(root int, name string, flags int, perm uint32) (int, error) {
	how := unix.OpenHow{
		Flags: uint64(flags), Mode: uint64(perm), //nolint:gosec // flags are not negative
		Resolve: unix.RESOLVE_BENEATH | unix.RESOLVE_NO_SYMLINKS | unix.RESOLVE_NO_MAGICLINKS,
	}
	for {
		fd, err := unix.Openat2(root, name, &how)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

// openStepwise opens a path part by part. A link among the parts is ELOOP, as
// openat2 has it.
func openStepwise(root int, name string, flags int, perm uint32) (int, error) {
	parts := strings.Split(name, "/")
	at := root
	for i, part := range parts {
		how, mode := unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, uint32(0)
		if i == len(parts)-1 {
			how, mode = flags, perm
		}
		next, err := openat(at, part, how|unix.O_NOFOLLOW, mode)
		if errors.Is(err, unix.ENOTDIR) && isLink(at, part) {
			err = unix.ELOOP
		}
		if at != root {
			_ = unix.Close(at) // a directory has nothing to be flushed
		}
		if err != nil {
			return -1, err
		}
		at = next
	}
	return at, nil
}

func openat(dir int, name string, flags int, perm uint32) (int, error) {
	for {
		fd, err := unix.Openat(dir, name, flags, perm)
		if !errors.Is(err, unix.EINTR) {
			return fd, err
		}
	}
}

func isLink(dir int, name string) bool {
	var st unix.Stat_t
	err := unix.Fstatat(dir, name, &st, unix.AT_SYMLINK_NOFOLLOW)
	return err == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK
}
