package output

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// inMemory is how much of an output is kept in memory; the rest goes to a file.
const inMemory = 256 << 10

// A whole keeps all of a text up to a bound.
type whole struct {
	dir     string // where its file is made; empty: where temporary files are
	most    int64
	kept    int64
	dropped int64
	memory  bytes.Buffer
	file    *os.File
	err     error // of the file: from then on nothing is kept
}

// write adds to the text. Where it cannot be kept nothing is: half of it, with
// a hole, is worse than none.
func (w *whole) write(text []byte) {
	room := min(w.most-w.kept, int64(len(text)))
	w.dropped += int64(len(text)) - room
	text = text[:room]
	if len(text) == 0 || w.err != nil {
		return
	}
	w.kept += room
	if w.file == nil && w.memory.Len()+len(text) <= inMemory {
		w.memory.Write(text)
		return
	}
	if w.file == nil {
		if w.err = w.spill(); w.err != nil {
			return
		}
	}
	_, w.err = w.file.Write(text)
}

// spill moves the text to a file that nobody else sees, and that is gone with
// the process.
func (w *whole) spill() error {
	f, err := os.CreateTemp(w.dir, ".output-*")
	if err != nil {
		return fmt.Errorf("making a file for the output: %w", err)
	}
	w.file = f
	if err := os.Remove(f.Name()); err != nil {
		return fmt.Errorf("hiding the file for the output: %w", err)
	}
	if _, err := f.Write(w.memory.Bytes()); err != nil {
		return fmt.Errorf("writing the output to a file: %w", err)
	}
	w.memory = bytes.Buffer{}
	return nil
}

// reader reads the text from its beginning.
func (w *whole) reader() (io.Reader, error) {
	switch {
	case w.err != nil:
		return nil, w.err
	case w.file == nil:
		return bytes.NewReader(w.memory.Bytes()), nil
	}
	return io.NewSectionReader(w.file, 0, w.kept), nil
}

func (w *whole) close() {
	if w.file != nil {
		_ = w.file.Close() // it is gone with this
	}
	w.file, w.err = nil, errors.New("the output was put away")
}
