package journal

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/deckhand-dev/deckhand/runner/step"
)

// Options name the Run and the attempt of a journal.
type Options struct {
	Dir     string
	RunUID  string
	Attempt int
	// Durable reports that the directory outlives the pod. Space is then reserved on its disk, which may be small and
	// belongs to the Run.
	Durable bool
	Now     func() time.Time
	// PID is the process that the lock file names, with its host, for messages of other processes; 0: it names none,
	// because other pods cannot see it.
	PID int
	// LowSpace is called once, when the disk was full and the reserved space had to
	// be released to go on. It may be nil.
	LowSpace func()
	// Models are the hashes of the definitions of the Models of the Run, by name.
	Models map[string]string
	// Continue names the session of another Run that this one continues, whose state directory is in [SourceDir]; nil:
	// none. Through is ignored. A Run that has begun keeps what its first header says.
	Continue *Continued
}

// A Dir is a journal on disk, held by a lock for as long as it is open.
type Dir struct {
	opts     Options
	lock     *dirLock
	earlier  history // of attempts before this one
	restarts int

	mu     sync.Mutex
	file   *os.File
	seq    int64 // of the last record
	size   int64 // of the whole lines in file
	broken error // the first failure to write: nothing is appended after it
}

var _ Log = (*Dir)(nil)

// Open opens the journal in a directory, or creates one. It refuses a directory that another process has locked, that
// belongs to another Run, or that a later attempt has taken over.
func Open(o Options) (*Dir, error) {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the state directory: %w", err)
	}
	lock, err := lockDir(o.Dir, o.PID)
	if err != nil {
		return nil, err
	}
	d := &Dir{opts: o, lock: lock}
	if err := d.takeOver(); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// takeOver finds the files of earlier attempts, and opens the file of this attempt, which follows them.
func (d *Dir) takeOver() error {
	found, err := segments(d.opts.Dir)
	if err != nil {
		return err
	}
	own, err := d.takeSegments(found)
	if err != nil {
		return err
	}
	continued, err := d.openContinued(firstHeader(found))
	if err != nil {
		return err
	}
	if err := errors.Join(d.openOwn(own, continued), writeModels(d.opts.Dir, d.opts.Models)); err != nil {
		return err
	}
	if d.opts.Durable {
		if err := reserveSpace(d.opts.Dir); err != nil {
			return err
		}
	}
	return syncDir(d.opts.Dir)
}

// takeSegments takes the files of earlier attempts, and returns this attempt's own, which may not exist yet.
func (d *Dir) takeSegments(found []segment) (segment, error) {
	own := segment{attempt: d.opts.Attempt, path: segmentPath(d.opts.Dir, d.opts.Attempt)}
	for _, s := range found {
		if err := d.checkSegment(s); err != nil {
			return own, err
		}
		if s.attempt == own.attempt {
			own = s
			continue
		}
		d.earlier.segments = append(d.earlier.segments, s)
		if s.header != nil {
			d.seq = s.last
		}
	}
	return own, nil
}

// openContinued opens the journal of the Run that this one continues. It returns what the first header has to say of it;
// nil: the Run continues none, or that header was written before.
func (d *Dir) openContinued(first *Header) (*Continued, error) {
	c := d.opts.Continue
	if first != nil {
		c = first.Continues
	}
	if c == nil {
		return nil, nil //nolint:nilnil // most Runs continue none
	}
	asked := *c
	if first == nil {
		asked.Through = 0
	}
	from, err := openSource(d.opts.Dir, asked, 1)
	if err != nil {
		return nil, notContinued(c.Run, err)
	}
	d.earlier.continued = from
	if first != nil {
		return nil, nil //nolint:nilnil // it is written
	}
	d.seq, asked.Through = from.through, from.through
	if asked.Models, err = unchangedModels(SourceDir(d.opts.Dir), d.opts.Models); err != nil {
		return nil, notContinued(c.Run, err)
	}
	return &asked, nil
}

// checkSegment refuses the file of an attempt that this one must not continue.
func (d *Dir) checkSegment(s segment) error {
	if s.attempt > d.opts.Attempt {
		return &SupersededError{Attempt: d.opts.Attempt, Later: s.attempt}
	}
	return checkHeader(s, d.opts.RunUID)
}

// checkHeader refuses the file of another Run, or of a newer runner.
func checkHeader(s segment, runUID string) error {
	if s.header == nil {
		return nil // it was cut before it began
	}
	if s.header.RunUID != runUID {
		return &ForeignError{RunUID: s.header.RunUID, Want: runUID}
	}
	if s.header.Version > FormatVersion {
		return fmt.Errorf("the journal %s has format %d; this runner reads up to %d", s.path, s.header.Version, FormatVersion)
	}
	return nil
}

// openOwn opens the file of this attempt and removes an incomplete last line. It then writes a header, or, if the
// attempt was restarted, a mark.
func (d *Dir) openOwn(own segment, continued *Continued) error {
	f, err := os.OpenFile(own.path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("opening the journal: %w", err)
	}
	d.file, d.size = f, own.size
	if err := f.Truncate(own.size); err != nil {
		return fmt.Errorf("cutting the torn tail of the journal: %w", err)
	}
	if own.header == nil {
		h := Header{Version: 1, RunUID: d.opts.RunUID, Attempt: d.opts.Attempt, After: d.seq, Continues: continued}
		if d.earlier.continued != nil {
			h.Version = FormatVersion
		}
		return d.Append(Record{Kind: KindHeader, Header: &h})
	}
	d.seq, d.restarts = own.last, own.restarts+1
	return d.Append(Record{Kind: KindMark, Mark: &Mark{Type: MarkRestarted}})
}

// Restarts returns how often this attempt was restarted.
func (d *Dir) Restarts() int { return d.restarts }

// Append records r and syncs it to the disk. If the disk is full, the reserved space is released once; after that, the
// error is a *FullError. After any failure the journal is unchanged and accepts no more records.
func (d *Dir) Append(r Record) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.broken != nil {
		return d.broken
	}
	r.Seq = d.seq + 1
	if r.At.IsZero() { // callers that need the exact time of a record set it
		r.At = d.opts.Now().UTC()
	}
	line, err := encodeLine(r)
	if err != nil {
		return err
	}
	err = d.write(line)
	if errors.Is(err, syscall.ENOSPC) && d.releaseSpace() {
		err = d.write(line)
	}
	if err != nil {
		d.broken = appendError(err)
		return d.broken
	}
	d.seq, d.size = r.Seq, d.size+int64(len(line))
	return nil
}

func appendError(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return &FullError{Err: err}
	}
	return fmt.Errorf("appending to the journal: %w", err)
}

// write writes a line after the last complete one, even if a failed write left the file longer.
func (d *Dir) write(line []byte) error {
	if _, err := d.file.WriteAt(line, d.size); err != nil {
		return errors.Join(err, d.file.Truncate(d.size))
	}
	return syscall.Fdatasync(int(d.file.Fd()))
}

// Close releases the directory. Appended records stay.
func (d *Dir) Close() error {
	var err error
	if d.file != nil {
		err = d.file.Close()
	}
	return errors.Join(err, d.lock.release())
}

// syncDir makes new file names survive a crash of the node.
func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return fmt.Errorf("opening the state directory: %w", err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil {
		return fmt.Errorf("syncing the state directory: %w", err)
	}
	return nil
}

// Steps returns the steps of a session from a number on, hidden ones included, in their order. A journal has the
// results of a turn in the order in which they arrived; at most the steps of one turn are held in memory. An error ends
// the sequence.
func Steps(records iter.Seq2[Record, error], session string, from int64) iter.Seq2[step.Step, error] {
	return func(yield func(step.Step, error) bool) {
		s := sorter{session: session, next: 1, early: map[int64]step.Step{}}
		s.yield = func(t step.Step) bool { return t.Seq < from || yield(t, nil) }
		for r, err := range records {
			if err != nil {
				yield(step.Step{}, err)
				return
			}
			if !s.add(r) {
				return
			}
		}
	}
}

// A sorter holds back steps of a session until the ones before them have arrived.
type sorter struct {
	session string
	next    int64
	early   map[int64]step.Step
	yield   func(step.Step) bool
}

// add takes the step of a record, if it belongs to the session and is the first with its number, and yields the steps
// that are next in order. It returns false to end the iteration.
func (s *sorter) add(r Record) bool {
	if r.Session != s.session || r.Step == nil || r.Kind != KindStep && r.Kind != KindResult {
		return true
	}
	if _, twice := s.early[r.Step.Seq]; !twice && r.Step.Seq >= s.next {
		s.early[r.Step.Seq] = *r.Step
	}
	for due, ok := s.early[s.next]; ok; due, ok = s.early[s.next] {
		delete(s.early, s.next)
		s.next++
		if !s.yield(due) {
			return false
		}
	}
	return true
}

// A segment is the file of one attempt.
type segment struct {
	attempt  int
	path     string
	header   *Header // nil: the file was cut before its header was whole
	last     int64   // number of the last whole record
	size     int64   // of the whole lines
	restarts int
}

func segmentPath(dir string, attempt int) string {
	return filepath.Join(dir, fmt.Sprintf("journal-%04d.jsonl", attempt))
}

// attemptOf returns the attempt whose file has a name.
func attemptOf(name string) (int, bool) {
	var attempt int
	_, err := fmt.Sscanf(name, "journal-%d.jsonl", &attempt)
	return attempt, err == nil && name == segmentPath("", attempt)
}

// IsFile reports whether a file of a state directory belongs to its journal.
func IsFile(name string) bool {
	_, is := attemptOf(name)
	return is || name == modelsFile
}

// segments reads the files of a directory, oldest attempt first.
func segments(dir string) ([]segment, error) { return readSegments(dir, checkSegment) }

func readSegments(dir string, read func(segment) (segment, error)) ([]segment, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("listing the state directory: %w", err)
	}
	var found []segment
	for _, e := range entries {
		attempt, is := attemptOf(e.Name())
		if !is {
			continue
		}
		s, err := read(segment{attempt: attempt, path: filepath.Join(dir, e.Name())})
		if err != nil {
			return nil, err
		}
		found = append(found, s)
	}
	slices.SortFunc(found, func(a, b segment) int { return a.attempt - b.attempt })
	return found, nil
}

// Owner returns the UID of the Run that a directory has a journal of; empty: there is none, or it cannot be read, which
// Open reports.
func Owner(dir string) string {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if _, is := attemptOf(e.Name()); !is {
			continue
		}
		for l, err := range lines(filepath.Join(dir, e.Name())) {
			var r Record
			if err == nil && json.Unmarshal(l.body, &r) == nil && r.Header != nil {
				return r.Header.RunUID
			}
			break
		}
	}
	return ""
}

// checkSegment checks every line of a segment and reads its first and last records.
func checkSegment(s segment) (segment, error) {
	n := 0
	for l, err := range lines(s.path) {
		n++
		if err == nil {
			err = s.addLine(l)
		}
		if err != nil {
			return s, withLocation(err, s, n)
		}
	}
	return s, nil
}

// readHeader reads the first line of a segment.
func readHeader(s segment) (segment, error) {
	for l, err := range lines(s.path) {
		if err == nil {
			err = s.addLine(l)
		}
		return s, withLocation(err, s, 1)
	}
	return s, nil
}

// maxInspected is the size of the largest record that segments decodes: headers and marks are small, and other records
// are left to Read.
const maxInspected = 256

// addLine adds the facts of one line.
func (s *segment) addLine(l rawLine) error {
	var r struct {
		Seq    int64   `json:"seq"`
		Header *Header `json:"header"`
		Mark   *Mark   `json:"mark"`
	}
	first := s.size == 0
	if first || len(l.body) < maxInspected {
		if err := json.Unmarshal(l.body, &r); err != nil {
			return &CorruptError{Reason: err.Error()}
		}
	}
	switch {
	case first && r.Header == nil:
		return &CorruptError{Reason: "no header"}
	case first && r.Seq != r.Header.After+1:
		return &CorruptError{Reason: fmt.Sprintf("the header is record %d and follows record %d", r.Seq, r.Header.After)}
	case first:
		s.header, s.last = r.Header, r.Seq
	default:
		s.last++ // numbers are contiguous; Read holds them to it
	}
	if r.Mark != nil && r.Mark.Type == MarkRestarted {
		s.restarts++
	}
	s.size = l.end
	return nil
}

// Memory is a Log in memory. The zero value is empty and ready.
type Memory struct {
	mu      sync.Mutex
	records []Record
}

var _ Log = (*Memory)(nil)

// Append appends r.
func (m *Memory) Append(r Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	r.Seq = int64(len(m.records)) + 1
	m.records = append(m.records, r)
	return nil
}

// Read returns the records so far.
func (m *Memory) Read() iter.Seq2[Record, error] {
	m.mu.Lock()
	records := slices.Clone(m.records)
	m.mu.Unlock()
	return func(yield func(Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}
}
