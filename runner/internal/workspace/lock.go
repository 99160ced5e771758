package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// lockPoll is the interval between attempts to lock.
const lockPoll = 250 * time.Millisecond

// lock locks a file against other processes, for example of other Runs on the same
// volume. It calls waiting once if it has to wait. The kernel releases the lock when
// the process ends.
func lock(ctx context.Context, name string, waiting func()) (release func(), err error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the lock of the workspace: %w", err)
	}
	poll := time.NewTicker(lockPoll)
	defer poll.Stop()
	for waited := false; ; waited = true {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return func() { _ = f.Close() }, nil // which releases the lock
		case !errors.Is(err, syscall.EWOULDBLOCK):
			return nil, errors.Join(fmt.Errorf("locking the workspace: %w", err), f.Close())
		case !waited:
			waiting()
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), f.Close())
		}
	}
}
