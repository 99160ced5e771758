package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// reserveSize is enough to record how a Run ended, many times over.
const reserveSize = 32 << 20

func reservePath(dir string) string { return filepath.Join(dir, "reserve") }

// reserveSpace reserves space on the disk for when it is full. A disk that is already
// full has none; the journal works without it.
func reserveSpace(dir string) error {
	f, err := os.OpenFile(reservePath(dir), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) || errors.Is(err, syscall.ENOSPC) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("reserving space: %w", err)
	}
	if err := syscall.Fallocate(int(f.Fd()), 0, 0, reserveSize); err != nil {
		return errors.Join(f.Close(), os.Remove(f.Name()))
	}
	return f.Close()
}

// releaseSpace deletes the reserve, and reports whether there was one.
func (d *Dir) releaseSpace() bool {
	if err := os.Remove(reservePath(d.opts.Dir)); err != nil {
		return false
	}
	if d.opts.LowSpace != nil {
		d.opts.LowSpace()
	}
	return true
}
