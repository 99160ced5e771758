package eventlog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// MaxFile is the size of each of the two files of a File.
const MaxFile = 4 << 20

// The names of the files, in the order in which they are read.
const (
	earlierFile = "1-earlier.jsonl"
	latestFile  = "2-latest.jsonl"
)

// A File stores lines in a directory: the last ones, at least MaxFile and at most twice as many
// bytes. It is not synchronized with the disk, because only readers after the end need it. After
// an error, for example because the disk is full, it stores nothing more.
type File struct {
	dir    string
	max    int64
	latest *os.File
	size   int64
	err    error
}

var _ io.Writer = (*File)(nil)

// OpenFile makes the directory if it does not exist, and appends to what an earlier runner stored.
func OpenFile(dir string) (*File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the directory of the events: %w", err)
	}
	f := &File{dir: dir, max: MaxFile}
	return f, f.open()
}

// open opens the latest file. A line that a killed runner began is ended.
func (f *File) open() error {
	latest, err := os.OpenFile(filepath.Join(f.dir, latestFile), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("opening the file of the events: %w", err)
	}
	info, err := latest.Stat()
	if err != nil {
		return errors.Join(fmt.Errorf("opening the file of the events: %w", err), latest.Close())
	}
	f.latest, f.size = latest, info.Size()
	last := []byte{'\n'}
	if f.size > 0 {
		_, err = latest.ReadAt(last, f.size-1)
	}
	if err == nil && last[0] != '\n' {
		_, err = latest.WriteString("\n")
		f.size++
	}
	return err
}

// Write stores a line. If the latest file is full, it becomes the earlier one.
func (f *File) Write(line []byte) (int, error) {
	if f.err == nil && f.size > 0 && f.size+int64(len(line)) > f.max {
		f.err = f.rotate()
	}
	if f.err == nil {
		_, f.err = f.latest.Write(line)
		f.size += int64(len(line))
	}
	return len(line), f.err
}

func (f *File) rotate() error {
	err := errors.Join(f.latest.Close(), os.Rename(filepath.Join(f.dir, latestFile), filepath.Join(f.dir, earlierFile)))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return f.open()
}

// Close closes the file.
func (f *File) Close() error { return f.latest.Close() }
