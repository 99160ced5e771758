package workspace

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// flush brings to the disk all that was written to the volume of a directory.
func flush(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(unix.Syncfs(int(f.Fd())), f.Close())
}
