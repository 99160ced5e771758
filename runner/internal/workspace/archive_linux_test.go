package workspace

import (
	"archive/tar"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// An agent may take the right to read a file from everybody.
func TestAFileThatCannotBeReadHidesNoOther(t *testing.T) {
	dir := newFiles(t)
	for _, name := range []string{"docs/a", "docs/secrets/b"} {
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755), os.WriteFile(filepath.Join(dir, name), nil, 0)); err != nil {
			t.Fatal(err)
		}
	}
	secrets := filepath.Join(dir, "docs", "secrets")
	if err := errors.Join(os.Chmod(secrets, 0), os.Chmod(filepath.Dir(dir), 0o755)); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Chmod(secrets, 0o755) }()
	var written bytes.Buffer
	var err error
	withoutRights(t, func() { err = WriteArchive(&written, dir, "docs") })
	if err == nil || err.Error() != "permission denied to read a, secrets; all other files are sent" {
		t.Errorf("the error is %v", err)
	}
	names := map[string]bool{}
	r := tar.NewReader(&written)
	for header, err := r.Next(); err == nil; header, err = r.Next() {
		names[header.Name] = true
	}
	if !names["report.md"] || !names["empty/"] || names["a"] {
		t.Errorf("the archive has %v", names)
	}
}

// WithoutRights is for the tests outside of the package.
var WithoutRights = withoutRights

// withoutRights calls a function as a user who is not root: the rights of files are decided by
// thread.
func withoutRights(t *testing.T, call func()) {
	t.Helper()
	const nobody = 65534
	if os.Geteuid() == 0 {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := unix.Setfsuid(nobody); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = unix.Setfsuid(0) }()
	}
	call()
}
