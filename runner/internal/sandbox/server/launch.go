//go:build linux

package server

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox/internal/confine"
)

// A launcher starts processes from a thread that has confined itself. They have
// its confinement in common, so that commands may signal one another, and not
// the server.
type launcher struct {
	work    chan func()
	applied confine.Applied
}

// newLauncher makes a launcher; protect is what it confines itself from, empty
// for no confinement.
func newLauncher(protect string) *launcher {
	l := &launcher{work: make(chan func())}
	ready := make(chan struct{})
	go onOwnThread(func() {
		if protect != "" {
			l.applied = confine.Thread(protect)
		}
		close(ready)
		for f := range l.work {
			f()
		}
	})
	<-ready
	return l
}

// onOwnThread runs f on a thread of its own for good. It must not be the main thread:
// that is the one which /proc and signals of others take for the process.
func onOwnThread(f func()) {
	runtime.LockOSThread()
	if unix.Gettid() != unix.Getpid() {
		f()
		return
	}
	taken := make(chan struct{})
	go onOwnThread(func() { // cannot get this thread while it is locked
		close(taken)
		f()
	})
	<-taken
	runtime.UnlockOSThread()
}

// launch starts this program once more, in another mode.
func (l *launcher) launch(mode string, files []*os.File) (pid int, err error) {
	attr := &syscall.ProcAttr{
		Env: []string{"GOTRACEBACK=none"}, // what fails here is not for the log
		Sys: &syscall.SysProcAttr{Setsid: true},
	}
	for _, f := range files {
		attr.Files = append(attr.Files, f.Fd())
	}
	done := make(chan struct{})
	l.work <- func() {
		defer close(done)
		pid, err = syscall.ForkExec("/proc/self/exe", []string{"sandbox", mode}, attr)
	}
	<-done
	if err != nil {
		return 0, fmt.Errorf("starting a %s: %w", mode, err)
	}
	return pid, nil
}
