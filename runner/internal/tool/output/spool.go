package output

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// inMemory is how many bytes are kept in memory; a longer text is in a file.
const inMemory = 256 << 10

// A spool keeps a text up to a bound.
type spool struct {
	dir     string // for its file; empty: the directory for temporary files
	most    int64
	kept    int64
	dropped int64
	memory  bytes.Buffer
	file    *os.File
	err     error // of the file; after it nothing is kept
}

// write appends to the text. After an error nothing is kept: a text with a gap would
// be misleading.
func (w *spool) write(text []byte) {
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

// spill moves the text to an unlinked file, which is removed when the process ends.
func (w *spool) spill() error {
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

// reader returns a reader of the text.
func (w *spool) reader() (io.Reader, error) {
	switch {
	case w.err != nil:
		return nil, w.err
	case w.file == nil:
		return bytes.NewReader(w.memory.Bytes()), nil
	}
	return io.NewSectionReader(w.file, 0, w.kept), nil
}

func (w *spool) close() {
	if w.file != nil {
		_ = w.file.Close() // which removes it
	}
	w.file, w.err = nil, errors.New("the output was closed")
}
