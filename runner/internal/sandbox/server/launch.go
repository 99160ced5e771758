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

// A launcher starts processes from a thread that has confined itself. They are all
// in its Landlock domain, so commands may signal one another, but not the server.
type launcher struct {
	work    chan func()
	applied confine.Applied
}

// newLauncher starts the thread and confines it; nil: no confinement.
func newLauncher(confineThread func() confine.Applied) *launcher {
	l := &launcher{work: make(chan func())}
	ready := make(chan struct{})
	go onOwnThread(func() {
		if confineThread != nil {
			l.applied = confineThread()
		}
		close(ready)
		for f := range l.work {
			f()
		}
	})
	<-ready
	return l
}

// onOwnThread runs f on a thread that runs nothing else. It is not the main thread,
// which /proc and signals use for the process.
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

// launch starts this program in another mode.
func (l *launcher) launch(mode string, files []*os.File) (pid int, err error) {
	attr := &syscall.ProcAttr{
		Env: []string{"GOTRACEBACK=none"}, // a crash is not logged
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
