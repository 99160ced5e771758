package local

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// landlockVersion returns the version of Landlock of this kernel; 0: none.
func landlockVersion() int {
	version, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(version)
}

// thisKernel returns the kernel of this machine.
func thisKernel() kernel {
	text, _ := os.ReadFile("/proc/sys/kernel/yama/ptrace_scope") // most kernels without it let programs be read
	scope := strings.TrimSpace(string(text))
	return kernel{landlock: landlockVersion(), closed: scope == "3" || scope == "2" && os.Geteuid() != 0}
}

// isWritable reports whether this user may create files in a directory.
func isWritable(dir string) bool { return unix.Access(dir, unix.W_OK|unix.X_OK) == nil }

// isLocked reports whether a process has locked a file, as a runner locks its journal.
func isLocked(file string) bool {
	f, err := os.Open(file)
	if err != nil {
		return false // no runner came so far
	}
	defer f.Close() // which unlocks it
	return errors.Is(unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
}

// lockFile locks an open file until all processes that inherit it have ended.
func lockFile(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) }

// isUnlocked reports whether a file exists that can be locked.
func isUnlocked(file string) bool {
	f, err := os.OpenFile(file, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return false
	}
	defer f.Close() // which unlocks it
	return unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) == nil
}

// isOwn reports whether a path is a directory of this user, and no link to one.
func isOwn(dir string) bool {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return false
	}
	of, is := info.Sys().(*syscall.Stat_t)
	return is && int(of.Uid) == os.Geteuid()
}

// isolate keeps a process from the signals of the terminal, and ends it with this process.
func isolate(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
}
