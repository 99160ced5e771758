package local

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/deckhand-dev/deckhand/internal/cli/exit"
)

func TestSystemDirectoriesAreNoPlaceForALocalRun(t *testing.T) {
	for dir, want := range map[string]string{
		"/etc": "/etc", "/etc/ssh": "/etc", "/proc": "/proc", "/sys/fs": "/sys", "/boot": "/boot", "/dev": "/dev",
		"/usr": "/usr", "/usr/local": "/usr", "/usr/src": "/usr", "/var/lib": "/var/lib", "/var/lib/dpkg/info": "/var/lib", "/run/user": "/run",
		"/dev/shm/work": "", "/usr/src/app": "", "/usr/local/src/a": "", "/run/user/1000/a": "/run",
		"/srv/work": "", "/home/ann/etc": "", "/opt/work": "", "/var/www/a": "", "/etcetera": "", "/work": "",
	} {
		if got := systemDirectory(dir); got != want {
			t.Errorf("%s: %q, want %q", dir, got, want)
		}
	}
	if got := systemDirectory("/var"); got == "" {
		t.Error("/var has /var/lib in it")
	}
}

func TestAServiceMayWorkInItsHome(t *testing.T) {
	for _, tc := range []struct {
		home, dir string
		want      bool
	}{
		{"/var/lib/jenkins", "/var/lib/jenkins/workspace/a", true},
		{"/var/lib/jenkins", "/var/lib/jenkins", false},
		{"/var/lib/jenkins", "/var/lib/dpkg", false},
		{"/", "/etc", false},
		{"/usr/sbin", "/usr/sbin/a", false},
		{"", "/etc", false},
	} {
		if got := isServiceHome(tc.home, tc.dir); got != tc.want {
			t.Errorf("home %q, %s: %v", tc.home, tc.dir, got)
		}
	}
}

func TestALinkToASystemDirectoryIsRefused(t *testing.T) {
	link := filepath.Join(t.TempDir(), "work")
	if err := os.Symlink("/etc", link); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"/etc", link, "/proc/self/root/etc", "/usr/bin/.."} {
		s := newSession(t)
		code := s.run(t, "-f", "agent.yaml", "-C", dir, "-p", "Work.")
		if code != exit.Usage || !strings.Contains(s.err.String(), "belongs to the system: name a directory with the work only") {
			t.Errorf("%s: exit code %d: %s", dir, code, s.text())
		}
	}
}

func TestADirectoryOfTheUserIsWritable(t *testing.T) {
	dir := t.TempDir()
	if !isWritable(dir) {
		t.Error("a directory of this user is not")
	}
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() != 0 && isWritable(dir) { // root may write everywhere
		t.Error("one without the right to write is")
	}
	if isWritable(filepath.Join(dir, "missing")) {
		t.Error("one that does not exist is")
	}
}

// A directory that a Run has is not given to another one, and nobody is told to remove the journal of a
// Run that works.
func TestANameThatIsTaken(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	p, err := newPlace("fix")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	if _, err := newPlace("fix"); err == nil || !strings.Contains(err.Error(), "there was a local Run fix") {
		t.Errorf("after its end: %v", err)
	}
	lock, err := os.Create(filepath.Join(p.journal(), "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if _, err := newPlace("fix"); err == nil || !strings.Contains(err.Error(), "is at work") || strings.Contains(err.Error(), "remove") {
		t.Errorf("while it works: %v", err)
	}
}

// A Run that was killed could not remove its directory.
func TestDirectoriesOfKilledRunsAreRemoved(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	killed, err := newPlace("killed")
	if err != nil {
		t.Fatal(err)
	}
	_ = killed.lock.Close() // as the kernel does
	works, err := newPlace("works")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(works.close)
	if err := errors.Join(
		os.Mkdir(filepath.Join(temp, "deckhand-run-begins"), 0o700), // it is not locked yet
		os.Mkdir(filepath.Join(temp, "other"), 0o700),
		os.WriteFile(filepath.Join(temp, "other", lockName), nil, 0o600),
		os.Symlink(filepath.Join(temp, "other"), filepath.Join(temp, "deckhand-run-link")),
	); err != nil {
		t.Fatal(err)
	}
	last, err := newPlace("last")
	if err != nil {
		t.Fatal(err)
	}
	last.close()
	entries, err := os.ReadDir(temp)
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	want := []string{filepath.Base(works.sandbox), "deckhand-run-begins", "deckhand-run-link", "other"}
	slices.Sort(want)
	if err != nil || !slices.Equal(left, want) {
		t.Errorf("%v are left, want %v; %v", left, want, err)
	}
	if _, err := os.Stat(filepath.Join(temp, "other", lockName)); err != nil {
		t.Error(err)
	}
}
