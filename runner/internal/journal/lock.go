package journal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// ownLocks has the lock files that this process holds. Their text does not say so: containers that share a volume have
// the same process ids.
var ownLocks sync.Map // of dirLock.id

// A dirLock is the lock of a state directory. The kernel frees it with the process.
type dirLock struct {
	file *os.File
	id   string // the device and the inode of the file, by whatever path it was opened
}

// lockDir locks a directory against other runners, and leaves for them which process holds it: pid, and its host.
func lockDir(dir string, pid int) (*dirLock, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock of the state directory: %w", err)
	}
	l := &dirLock{file: f}
	err = l.take()
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return nil, errors.Join(l.heldError(dir), f.Close())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("locking the state directory: %w", err), f.Close())
	}
	if err := f.Truncate(0); err == nil && pid != 0 {
		host, _ := os.Hostname()
		_, _ = fmt.Fprintln(f, pid, host) // without it a message says less
	}
	return l, nil
}

func (l *dirLock) take() error {
	var about syscall.Stat_t
	if err := syscall.Fstat(int(l.file.Fd()), &about); err != nil {
		return err //nolint:wrapcheck // lockDir does
	}
	l.id = fmt.Sprint(about.Dev, about.Ino)
	if err := syscall.Flock(int(l.file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return err //nolint:wrapcheck // lockDir does
	}
	ownLocks.Store(l.id, true)
	return nil
}

// heldError returns the error about a lock that another runner holds.
func (l *dirLock) heldError(dir string) *LockedError {
	_, own := ownLocks.Load(l.id)
	locked := &LockedError{Dir: dir, Own: own}
	const longest = 512
	text, _ := io.ReadAll(io.LimitReader(l.file, longest)) // what was read has no number, or all
	number, host, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	if pid, err := strconv.Atoi(number); err == nil && pid > 0 {
		locked.PID, locked.Host = pid, host
	}
	return locked
}

// release frees the lock.
func (l *dirLock) release() error {
	ownLocks.Delete(l.id)
	return l.file.Close()
}
