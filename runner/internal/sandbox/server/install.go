//go:build linux

package server

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// installAll installs into each directory, until one fails.
func installAll(dirs []string) error {
	for _, dir := range dirs {
		if err := install(dir); err != nil {
			return err
		}
	}
	return nil
}

// install copies this program to bin below a directory and makes run for its
// socket. It is idempotent.
func install(dir string) error {
	bin, run := filepath.Join(dir, "bin"), filepath.Join(dir, "run")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		return fmt.Errorf("installing: %w", err)
	}
	if err := os.MkdirAll(run, 0o770); err != nil {
		return fmt.Errorf("installing: %w", err)
	}
	if err := os.Chmod(run, 0o770); err != nil { // independent of the umask
		return fmt.Errorf("installing: %w", err)
	}
	if err := copyProgram(filepath.Join(bin, "sandbox")); err != nil {
		return fmt.Errorf("installing: %w", err)
	}
	return nil
}

// copyProgram copies this program atomically.
func copyProgram(to string) error {
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		return err //nolint:wrapcheck // install does
	}
	defer from.Close()
	half, err := os.CreateTemp(filepath.Dir(to), ".sandbox-*")
	if err != nil {
		return err //nolint:wrapcheck // install does
	}
	defer os.Remove(half.Name()) //nolint:errcheck // exists only after a failure
	_, err = io.Copy(half, from)
	if err == nil {
		err = half.Chmod(0o755)
	}
	if closed := half.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err //nolint:wrapcheck // install does
	}
	return os.Rename(half.Name(), to) //nolint:wrapcheck // install does
}
