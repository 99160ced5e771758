package journal

import (
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
)

// Read returns the records of every attempt, each up to the record at which the next one took over. The records of the Run
// that this one continues precede them.
func (d *Dir) Read() iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		d.mu.Lock()
		own := segment{attempt: d.opts.Attempt, path: segmentPath(d.opts.Dir, d.opts.Attempt), size: d.size, last: d.seq}
		all := history{segments: append(slices.Clone(d.earlier.segments), own), continued: d.earlier.continued}
		d.mu.Unlock()
		all.read(own.last)(yield)
	}
}

// lastValid returns the last record of a segment that later segments continue.
func lastValid(later []segment, last int64) int64 {
	for _, s := range later {
		if s.header != nil {
			return min(last, s.header.After)
		}
	}
	return last
}

// readSegment returns the records of a segment after number seq, up to number until.
func readSegment(s segment, seq, until int64) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		if seq >= until {
			return
		}
		n := 0
		for r, err := range decodeAhead(lines(s.path)) {
			n++
			if err == nil {
				err = checkOrder(r, seq)
			}
			if !yield(r, withLocation(err, s, n)) || err != nil || r.Seq >= until {
				return
			}
			seq = r.Seq
		}
	}
}

// checkOrder returns an error unless a record has the number after seq.
func checkOrder(r Record, seq int64) error {
	if r.Seq == seq+1 {
		return nil
	}
	return &CorruptError{Reason: fmt.Sprintf("record %d where %d is due", r.Seq, seq+1)}
}

// withLocation adds the file and the line to a damage error.
func withLocation(err error, s segment, line int) error {
	if corrupt, ok := errors.AsType[*CorruptError](err); ok && corrupt.File == "" {
		corrupt.File, corrupt.Line = filepath.Base(s.path), line
	}
	return err
}

// A decodeJob is a record that is being decoded.
type decodeJob struct {
	record Record
	err    error
	done   chan struct{}
}

// decodeAhead decodes lines in parallel and returns their records in order. Decoding takes most of the time of a
// resume.
func decodeAhead(lines iter.Seq2[rawLine, error]) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		queue := make(chan *decodeJob, 2*runtime.GOMAXPROCS(0))
		stop := make(chan struct{})
		defer close(stop)
		go func() {
			defer close(queue)
			for l, err := range lines {
				select {
				case queue <- decode(l, err):
				case <-stop:
					return
				}
			}
		}()
		for d := range queue {
			<-d.done
			if !yield(d.record, d.err) {
				return
			}
		}
	}
}

// decode starts to decode a line.
func decode(l rawLine, err error) *decodeJob {
	d := &decodeJob{err: err, done: make(chan struct{})}
	if err != nil {
		close(d.done)
		return d
	}
	body, ok := bodies.Get().(*[]byte)
	if !ok {
		body = new([]byte)
	}
	*body = append((*body)[:0], l.body...) // the line is valid until the next alone
	go func() {
		defer close(d.done)
		var err error
		if d.record, err = decodeRecord(*body); err != nil {
			d.err = &CorruptError{Reason: err.Error()}
		}
		bodies.Put(body)
	}()
	return d
}

// bodies has buffers of lines that were decoded: a Record does not refer to them.
var bodies sync.Pool

// A CorruptError means that a journal is damaged anywhere but at its end, where a crash can leave an incomplete line.
type CorruptError struct {
	File   string
	Line   int // from 1
	Reason string
}

func (e *CorruptError) Error() string {
	return fmt.Sprintf("the journal is damaged at %s line %d: %s", e.File, e.Line, e.Reason)
}

// A SupersededError means that a later attempt has taken over the state
// directory.
type SupersededError struct {
	Attempt, Later int
}

func (e *SupersededError) Error() string {
	return fmt.Sprintf("attempt %d has taken over from attempt %d", e.Later, e.Attempt)
}

// A ForeignError means that the state directory belongs to another Run.
type ForeignError struct {
	RunUID, Want string
}

func (e *ForeignError) Error() string {
	return fmt.Sprintf("the state directory belongs to the Run with UID %q, not %q", e.RunUID, e.Want)
}

// A NotContinuedError means that the session of another Run cannot be continued.
type NotContinuedError struct {
	Run string
	Err error
}

func (e *NotContinuedError) Error() string {
	return fmt.Sprintf("the session of Run %s cannot be continued: %v", e.Run, e.Err)
}

func (e *NotContinuedError) Unwrap() error { return e.Err }

// A LockedError means that another runner is writing this journal.
type LockedError struct {
	Dir string
	// Own reports that the other runner is in this process.
	Own bool
	// PID is the id of the other process; 0: not known. In another container it may be the id of a process here, too.
	PID int
	// Host is where the other process is; empty: not known.
	Host string
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("another runner is using the state directory %s", e.Dir)
}

// A FullError means that the disk is full and the reserved space is used up.
type FullError struct {
	Err error
}

func (e *FullError) Error() string {
	return "the disk that holds the journal is full: " + e.Err.Error()
}

func (e *FullError) Unwrap() error { return e.Err }
