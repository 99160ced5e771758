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

// dataAt returns the next part of a file that is not a hole, from an offset on; start and end are equal: there is none.
func dataAt(f *os.File, at, size int64) (start, end int64, err error) {
	start, err = unix.Seek(int(f.Fd()), at, unix.SEEK_DATA)
	switch {
	case errors.Is(err, unix.ENXIO):
		return size, size, nil
	case errors.Is(err, unix.EINVAL): // the file system has no holes
		return at, size, nil
	case err != nil:
		return 0, 0, err
	}
	end, err = unix.Seek(int(f.Fd()), start, unix.SEEK_HOLE)
	return min(start, size), min(end, size), err
}
