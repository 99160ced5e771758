package output

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// Bounds of an output.
const (
	Shown   = 30_000  // characters that the model reads
	Kept    = 8 << 20 // bytes that are stored in a file if the output is truncated
	Emitted = 1 << 20 // bytes that are streamed to users
)

// overflowTimeout is how long storing the complete output may take after the context
// of the call has ended.
const overflowTimeout = time.Second

// An Overflow stores a text in a file for the file tools, and returns its path for
// the model.
type Overflow func(ctx context.Context, name string, text io.Reader) (path string, err error)

// A Storage is where output is stored. The zero value stores nothing.
type Storage struct {
	// State is the directory for temporary files. Default: that of the system.
	State string
	// Calls stores the end of each output for after a crash.
	Calls *Calls
	// Overflow stores the complete output if it is truncated. Nil: it is not stored.
	Overflow Overflow
}

// A Record is the output of one call. It is not safe for concurrent use.
type Record struct {
	storage Storage
	call    string
	emit    func(string)
	emitted int

	cleaner Cleaner
	clip    *Clip
	spool   spool
	capture *capture
}

// Record starts the output of a call. emit streams it to users.
func (s Storage) Record(call string, emit func(string)) *Record {
	return &Record{
		storage: s, call: call, emit: emit,
		clip: NewClip(Shown), spool: spool{dir: s.State, most: Kept}, capture: s.Calls.openCapture(call),
	}
}

// Write adds output.
func (r *Record) Write(p []byte) {
	r.capture.write(p)
	r.add(r.cleaner.Write(p))
}

func (r *Record) add(text []byte) {
	if len(text) == 0 {
		return
	}
	r.clip.Write(text)
	r.spool.write(text)
	room := Emitted - r.emitted
	switch r.emitted += len(text); {
	case room <= 0:
	case len(text) > room:
		r.emit("\n[There is more output; it is not shown here.]\n")
	default:
		r.emit(string(text))
	}
}

// Text returns the output for the model: all of it, or the beginning and the end with
// the path of the complete output.
func (r *Record) Text(ctx context.Context) string {
	r.add(r.cleaner.Flush())
	head, tail := r.clip.Ends()
	cut := r.clip.Cut()
	if cut == 0 {
		return head + tail
	}
	return fmt.Sprintf("%s\n\n[%d characters are cut out here. %s]\n\n%s", head, cut, r.storeWhole(ctx), tail)
}

// storeWhole stores the complete output and describes where it is.
func (r *Record) storeWhole(ctx context.Context) string {
	const lost = "The whole was not kept"
	if r.storage.Overflow == nil {
		return lost + "; write it to a file to read it in parts."
	}
	text, err := r.spool.reader()
	if err != nil {
		return fmt.Sprintf("%s: %v.", lost, err)
	}
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), overflowTimeout)
		defer cancel()
	}
	path, err := r.storage.Overflow(ctx, r.call, text)
	switch {
	case err != nil:
		return fmt.Sprintf("%s: %v.", lost, err)
	case r.spool.dropped > 0:
		return fmt.Sprintf("The first %d MiB are in %s; the %d bytes after them were not kept. Look for what you need in it with Grep.",
			r.spool.kept>>20, path, r.spool.dropped)
	}
	return fmt.Sprintf("The whole is in %s: look for what you need in it with Grep, or Read it in parts.", path)
}

// Close releases resources. The capture is kept for a while, because the result of the
// call is not recorded yet.
func (r *Record) Close() {
	r.spool.close()
	r.capture.close()
}

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
func (s *spool) write(text []byte) {
	room := min(s.most-s.kept, int64(len(text)))
	s.dropped += int64(len(text)) - room
	text = text[:room]
	if len(text) == 0 || s.err != nil {
		return
	}
	s.kept += room
	if s.file == nil && s.memory.Len()+len(text) <= inMemory {
		s.memory.Write(text)
		return
	}
	if s.file == nil {
		if s.err = s.spill(); s.err != nil {
			return
		}
	}
	_, s.err = s.file.Write(text)
}

// spill moves the text to an unlinked file, which is removed when the process ends.
func (s *spool) spill() error {
	f, err := os.CreateTemp(s.dir, ".output-*")
	if err != nil {
		return fmt.Errorf("making a file for the output: %w", err)
	}
	s.file = f
	if err := os.Remove(f.Name()); err != nil {
		return fmt.Errorf("hiding the file for the output: %w", err)
	}
	if _, err := f.Write(s.memory.Bytes()); err != nil {
		return fmt.Errorf("writing the output to a file: %w", err)
	}
	s.memory = bytes.Buffer{}
	return nil
}

// reader returns a reader of the text.
func (s *spool) reader() (io.Reader, error) {
	switch {
	case s.err != nil:
		return nil, s.err
	case s.file == nil:
		return bytes.NewReader(s.memory.Bytes()), nil
	}
	return io.NewSectionReader(s.file, 0, s.kept), nil
}

func (s *spool) close() {
	if s.file != nil {
		_ = s.file.Close() // which removes it
	}
	s.file, s.err = nil, errors.New("the output was closed")
}
