package workspace

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// flush writes the file system of a directory to disk.
func flush(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(f.Fd())), f.Close())
}
