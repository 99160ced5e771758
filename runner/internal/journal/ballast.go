package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// ballastSize is room enough to record how a Run ended, many times over.
const ballastSize = 32 << 20

func ballastPath(dir string) string { return filepath.Join(dir, "ballast") }

// holdBallast reserves room on the disk for the day that it is full. A disk
// that is full already has none, which is no reason not to start.
func holdBallast(dir string) error {
	f, err := os.OpenFile(ballastPath(dir), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.ENOSPC) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("making the ballast: %w", err)
	}
	if err := syscall.Fallocate(int(f.Fd()), 0, 0, ballastSize); err != nil {
		return errors.Join(f.Close(), os.Remove(f.Name()))
	}
	return f.Close()
}

// syncDir makes the names of new files survive a crash of the node.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("opening the state directory: %w", err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return fmt.Errorf("syncing the state directory: %w", err)
	}
	return nil
}
