// Package output processes the output of programs that tools run: it removes escape
// sequences, truncates the middle, stores the complete output in a file, streams it
// to users, and keeps the end for after a crash.
//
// A Record does this for one call. Memory is bounded for any output.
package output

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/deckhand-dev/deckhand/runner/task"
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

// Bounds and names of captures.
const (
	captureSize = 64 << 10 // bytes of a call
	maxKept     = 32       // calls that ended
	callsDir    = "calls"
	suffix      = ".out"
)

// headerSize is the size of the header of a file, which is the total number of bytes
// that were written. A ring buffer follows it.
const headerSize = 8

// Calls stores the end of the output of each call in a file, so that the next
// attempt can report it if the runner ends before the call has a result. A nil Calls
// stores nothing.
type Calls struct {
	dir string

	mu    sync.Mutex
	ended []string // names of files, oldest first
}

// OpenCalls opens the captures in a state directory. It removes the oldest captures
// of earlier attempts: only the last attempt's are needed.
func OpenCalls(state string) (*Calls, error) {
	if state == "" {
		return nil, nil //nolint:nilnil // without a state directory nothing is stored
	}
	c := &Calls{dir: filepath.Join(state, callsDir)}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the directory for the output of calls: %w", err)
	}
	left, err := os.ReadDir(c.dir)
	if err != nil {
		return nil, fmt.Errorf("listing the output of calls: %w", err)
	}
	left = slices.DeleteFunc(left, func(e os.DirEntry) bool { return !strings.HasSuffix(e.Name(), suffix) })
	slices.SortStableFunc(left, func(a, b os.DirEntry) int { return cmp.Compare(modTime(b), modTime(a)) })
	for _, e := range left[min(len(left), maxKept):] {
		_ = os.Remove(filepath.Join(c.dir, e.Name())) // an error only wastes space
	}
	return c, nil
}

// modTime returns when a file was last written; 0 if unknown.
func modTime(e os.DirEntry) int64 {
	info, err := e.Info()
	if err != nil {
		return 0
	}
	return info.ModTime().UnixNano()
}

// A capture is the file of one call. A nil capture discards everything.
type capture struct {
	calls *Calls
	name  string
	file  *os.File
	total int64
}

// openCapture creates the file of a call. It returns nil on an error: the call must
// not fail for it.
func (c *Calls) openCapture(id string) *capture {
	if c == nil {
		return nil
	}
	name := fileName(id)
	f, err := os.OpenFile(filepath.Join(c.dir, name), os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return nil
	}
	return &capture{calls: c, name: name, file: f}
}

// write appends output to the ring buffer.
func (c *capture) write(p []byte) {
	if c == nil {
		return
	}
	from := p[max(0, len(p)-captureSize):]
	at := c.total + int64(len(p)-len(from))
	for len(from) > 0 {
		place := at % captureSize
		n := min(int64(len(from)), captureSize-place)
		if _, err := c.file.WriteAt(from[:n], headerSize+place); err != nil {
			return // the file is unchanged
		}
		from, at = from[n:], at+n
	}
	c.total = at
	_, _ = c.file.WriteAt(binary.BigEndian.AppendUint64(nil, uint64(at)), 0) //nolint:gosec // never negative
}

// close closes the capture. The file is removed after maxKept further calls.
func (c *capture) close() {
	if c == nil {
		return
	}
	_ = c.file.Close() // it is only read after a crash
	k := c.calls
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ended = append(slices.DeleteFunc(k.ended, func(name string) bool { return name == c.name }), c.name)
	if len(k.ended) > maxKept {
		_ = os.Remove(filepath.Join(k.dir, k.ended[0])) // its result has been recorded
		k.ended = k.ended[1:]
	}
}

// Captured returns the end of the output of a call from a state directory; empty if
// there is none.
func Captured(state, callID string) string {
	if state == "" {
		return ""
	}
	f, err := os.Open(filepath.Join(state, callsDir, fileName(callID)))
	if err != nil {
		return ""
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, headerSize+captureSize))
	if err != nil || len(data) <= headerSize {
		return ""
	}
	total, ring := binary.BigEndian.Uint64(data), data[headerSize:]
	switch {
	case total < uint64(len(ring)):
		return Clean(ring[:total])
	case len(ring) < captureSize: // the disk was full
		return Clean(ring)
	case total == captureSize:
		return Clean(ring)
	}
	at := total % captureSize
	return fmt.Sprintf("[%d bytes before this are not kept]\n%s", total-captureSize, Clean(append(slices.Clone(ring[at:]), ring[:at]...)))
}

// fileName returns the name of the file of a call: a hash, because an ID may contain
// any characters.
func fileName(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:16]) + suffix
}

// A Ring keeps the last bytes of a growing text.
type Ring struct {
	most  int
	data  []byte
	total int64
}

// NewRing returns a Ring of most bytes.
func NewRing(most int) *Ring { return &Ring{most: most} }

// Write appends to the text.
func (r *Ring) Write(text []byte) {
	r.total += int64(len(text))
	text = text[max(0, len(text)-r.most):]
	if len(r.data)+len(text) > 2*r.most {
		r.data = append(r.data[:0], r.data[len(r.data)-(r.most-len(text)):]...)
	}
	r.data = append(r.data, text...)
}

// Total returns the length of the text in bytes.
func (r *Ring) Total() int64 { return r.total }

// Since returns the text from an offset, as far as it is kept, and how many bytes are
// not kept. The text begins with a complete character.
func (r *Ring) Since(offset int64) (text []byte, lost int64) {
	kept := r.data[max(0, len(r.data)-r.most):]
	first := r.total - int64(len(kept))
	if offset >= first {
		return kept[min(offset-first, int64(len(kept))):], 0
	}
	n := 0
	for n < len(kept) && n < utf8.UTFMax && !utf8.RuneStart(kept[n]) {
		n++
	}
	return kept[n:], first - offset + int64(n)
}

// Shrink reduces the size of the Ring.
func (r *Ring) Shrink(most int) {
	r.most = most
	r.data = bytes.Clone(r.data[max(0, len(r.data)-most):])
}

// Bounds of the time of a call.
const (
	DefaultTimeout = 2 * time.Minute
	MaxTimeout     = 6 * time.Hour
)

// Options configure a tool that runs a program, for all agents of a Run. Only Program
// is required.
type Options struct {
	// Program is the path of the program in the image.
	Program string
	// Workspace is the working directory.
	Workspace string
	// Timeout is the default timeout of a call, MaxTimeout the largest.
	Timeout, MaxTimeout time.Duration
	// State is the state directory of the runner. Empty: no state is stored.
	State string
	// Overflow stores the complete output if it is truncated. Nil: it is not stored.
	Overflow Overflow
}

// Complete sets defaults and opens the captures.
func (o Options) Complete() (Options, Storage, error) {
	o.Workspace = cmp.Or(o.Workspace, task.Workspace)
	o.Timeout = cmp.Or(o.Timeout, DefaultTimeout)
	o.MaxTimeout = cmp.Or(o.MaxTimeout, MaxTimeout)
	calls, err := OpenCalls(o.State)
	return o, Storage{State: o.State, Calls: calls, Overflow: o.Overflow}, err
}

// A Use configures a tool for one agent.
type Use struct {
	// Name is the name of the tool. Default: the name of its package.
	Name string
	// Timeout is the default timeout of a call. Default: Options.Timeout.
	Timeout time.Duration
}

// Complete sets defaults.
func (u Use) Complete(name string, o Options) Use {
	return Use{Name: cmp.Or(u.Name, name), Timeout: min(cmp.Or(u.Timeout, o.Timeout), o.MaxTimeout)}
}
