package output

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// What a crash leaves of the output of calls.
const (
	captured = 64 << 10 // bytes of a call
	maxKept  = 32       // calls that ended
	callsDir = "calls"
	suffix   = ".out"
)

// headerSize is the length of what stands before the ring in a file: how many
// bytes have ever been written.
const headerSize = 8

// Calls keep the end of what each call printed in a file, so that it can be told
// when the runner is lost before the call has a result. A nil one keeps nothing.
type Calls struct {
	dir string

	mu    sync.Mutex
	ended []string // names of files, oldest first
}

// OpenCalls opens the captures in a directory of state. It removes the oldest of
// those that earlier attempts left, as what they are for happens at once.
func OpenCalls(state string) (*Calls, error) {
	if state == "" {
		return nil, nil //nolint:nilnil // without state nothing is kept
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
	slices.SortStableFunc(left, func(a, b os.DirEntry) int { return cmp.Compare(age(b), age(a)) })
	for _, e := range left[min(len(left), maxKept):] {
		_ = os.Remove(filepath.Join(c.dir, e.Name())) // it only takes room
	}
	return c, nil
}

// age is when a file was last written; 0: nobody knows.
func age(e os.DirEntry) int64 {
	info, err := e.Info()
	if err != nil {
		return 0
	}
	return info.ModTime().UnixNano()
}

// A capture is the file of one call. A nil one takes everything and keeps none.
type capture struct {
	calls *Calls
	name  string
	file  *os.File
	total int64
}

// begin makes the file of a call. Where that fails nothing is kept: the call is
// worth more than what a crash would leave of it.
func (c *Calls) begin(id string) *capture {
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

// write adds output, over the oldest where there is too much.
func (c *capture) write(p []byte) {
	if c == nil {
		return
	}
	from := p[max(0, len(p)-captured):]
	at := c.total + int64(len(p)-len(from))
	for len(from) > 0 {
		place := at % captured
		n := min(int64(len(from)), captured-place)
		if _, err := c.file.WriteAt(from[:n], headerSize+place); err != nil {
			return // what is there stays as it was
		}
		from, at = from[n:], at+n
	}
	c.total = at
	_, _ = c.file.WriteAt(binary.BigEndian.AppendUint64(nil, uint64(at)), 0) //nolint:gosec // never negative
}

// close ends the capture. The file stays until others have taken its place.
func (c *capture) close() {
	if c == nil {
		return
	}
	_ = c.file.Close() // it was written for a crash only
	k := c.calls
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ended = append(slices.DeleteFunc(k.ended, func(name string) bool { return name == c.name }), c.name)
	if len(k.ended) > maxKept {
		_ = os.Remove(filepath.Join(k.dir, k.ended[0])) // its result is recorded long since
		k.ended = k.ended[1:]
	}
}

// Captured is the end of what a call printed, read from a directory of state;
// empty: nothing is known.
func Captured(state, callID string) string {
	if state == "" {
		return ""
	}
	f, err := os.Open(filepath.Join(state, callsDir, fileName(callID)))
	if err != nil {
		return ""
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, headerSize+captured))
	if err != nil || len(data) <= headerSize {
		return ""
	}
	total, ring := binary.BigEndian.Uint64(data), data[headerSize:]
	switch {
	case total < uint64(len(ring)):
		return Clean(ring[:total])
	case len(ring) < captured: // the disk was full
		return Clean(ring)
	case total == captured:
		return Clean(ring)
	}
	at := total % captured
	return fmt.Sprintf("[%d bytes before this are not kept]\n%s", total-captured, Clean(append(slices.Clone(ring[at:]), ring[:at]...)))
}

// fileName is the name of the file of a call. Ids that differ have names that
// differ, whatever is in them.
func fileName(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:16]) + suffix
}
