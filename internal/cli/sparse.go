package cli

import (
	"bytes"
	"errors"
	"os"
)

// maxFile bounds the size of one copied file: with holes it can have 8 EiB on a volume of 1 GiB, and all of that would
// be sent.
const maxFile = 64 << 30

// holeSize is the minimum size of a hole: the block size of most file systems.
const holeSize = 4096

var zeros [holeSize]byte

// A sparseFile is written from its beginning. Blocks of zeros become holes, which take no space on the disk.
type sparseFile struct {
	file *os.File
	size int64
}

// Write implements [io.Writer].
func (s *sparseFile) Write(p []byte) (int, error) {
	written := 0
	for written < len(p) {
		n := min(holeSize-int(s.size%holeSize), len(p)-written)
		part := p[written : written+n]
		if !bytes.Equal(part, zeros[:n]) {
			if _, err := s.file.WriteAt(part, s.size); err != nil {
				return written, err //nolint:wrapcheck // the caller names the file
			}
		}
		s.size += int64(n)
		written += n
	}
	return written, nil
}

// close ends the file, which may end with a hole.
func (s *sparseFile) close() error {
	return errors.Join(s.file.Truncate(s.size), s.file.Close())
}
