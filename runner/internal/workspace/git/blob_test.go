package git

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// What is swapped in between looking and opening is never taken for what was
// seen, and never waited for.
func TestOpenSame(t *testing.T) {
	file := func(at string) error { return os.WriteFile(at, []byte("other"), 0o600) }
	cases := map[string]struct {
		flags   int
		swap    func(at string) error
		changed bool
	}{
		"a file that stays":               {fileFlags, nil, false},
		"a file for another":              {fileFlags, file, true},
		"a file for a pipe":               {fileFlags, func(at string) error { return syscall.Mkfifo(at, 0o600) }, true},
		"a file for a link inside":        {fileFlags, func(at string) error { return os.Symlink("beside", at) }, true},
		"a file for a link outside":       {fileFlags, func(at string) error { return os.Symlink("/etc/passwd", at) }, true},
		"a file for a link to itself":     {fileFlags, func(at string) error { return os.Symlink(filepath.Base(at), at) }, true},
		"a file for a directory":          {fileFlags, func(at string) error { return os.Mkdir(at, 0o700) }, true},
		"a directory for another":         {dirFlags, func(at string) error { return os.Mkdir(at, 0o700) }, true},
		"a directory for a file":          {dirFlags, file, true},
		"a directory for a pipe":          {dirFlags, func(at string) error { return syscall.Mkfifo(at, 0o600) }, true},
		"a directory for a link outside":  {dirFlags, func(at string) error { return os.Symlink("/etc", at) }, true},
		"a directory for a link to .git":  {dirFlags, func(at string) error { return os.Symlink(".git", at) }, true},
		"a directory for a link to above": {dirFlags, func(at string) error { return os.Symlink("..", at) }, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			root, at := openTempRoot(t, tc.flags)
			seen, err := root.Lstat("x")
			if err != nil {
				t.Fatal(err)
			}
			if tc.swap != nil {
				err := errors.Join(os.Rename(at, at+"-before"), tc.swap(at)) // not removed: its inode must not be used again
				if err != nil {
					t.Fatal(err)
				}
			}
			f, err := openSame(root, "x", seen, tc.flags)
			if err == nil {
				f.Close()
			}
			if tc.changed != errors.Is(err, errChanging) || !tc.changed && err != nil {
				t.Errorf("got error %v", err)
			}
		})
	}
}

// openTempRoot returns a root with "x" in it, a file or a directory.
func openTempRoot(t *testing.T, flags int) (*os.Root, string) {
	t.Helper()
	dir := t.TempDir()
	at := filepath.Join(dir, "x")
	err := errors.Join(os.WriteFile(filepath.Join(dir, "beside"), nil, 0o600), os.Mkdir(filepath.Join(dir, ".git"), 0o700))
	if flags == dirFlags {
		err = errors.Join(err, os.Mkdir(at, 0o700))
	} else {
		err = errors.Join(err, os.WriteFile(at, nil, 0o600))
	}
	root, openErr := os.OpenRoot(dir)
	if err := errors.Join(err, openErr); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return root, at
}

func TestUnreadable(t *testing.T) {
	cases := map[string]struct {
		err     error
		refused bool
	}{
		"what changes is for people":              {errChanging, true},
		"what leads out is":                       {&fs.PathError{Op: "openat", Err: errors.New("path escapes from parent")}, true},
		"what is locked is":                       {&fs.PathError{Op: "openat", Err: syscall.EACCES}, true},
		"a directory that became a file is":       {&fs.PathError{Op: "openat", Err: syscall.ENOTDIR}, true},
		"a disk that fails may work another time": {&fs.PathError{Op: "openat", Err: syscall.EIO}, false},
		"so may a process with too many files":    {&fs.PathError{Op: "openat", Err: syscall.EMFILE}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if _, refused := errors.AsType[*RefusedError](unreadable("x", tc.err)); refused != tc.refused {
				t.Errorf("refused: %v, want %v", refused, tc.refused)
			}
		})
	}
}
