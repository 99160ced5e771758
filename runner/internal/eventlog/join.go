package eventlog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
	"unicode/utf8"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
)

// Deltas are joined until they are worth a line.
const (
	joinBytes = 256
	joinFor   = 250 * time.Millisecond
	maxBytes  = 8 << 10 // of one event
)

// deltaOf returns the text of a payload that is a piece of a longer text. The source distinguishes texts that grow at
// the same time.
func deltaOf(p events.Payload) (source, text string, is bool) {
	switch p := p.(type) {
	case events.TextDelta:
		return "text", p.Text, true
	case events.ThinkingDelta:
		return "thinking", p.Text, true
	case events.CallOutput:
		return "call " + p.ID, p.Text, true
	}
	return "", "", false
}

// withText returns a delta with another text.
func withText(p events.Payload, text string) events.Payload {
	switch p := p.(type) {
	case events.TextDelta:
		p.Text = text
		return p
	case events.ThinkingDelta:
		p.Text = text
		return p
	case events.CallOutput:
		p.Text = text
		return p
	}
	return p
}

// A joiner joins deltas. Its output is redacted, even if a secret was split over two pieces.
type joiner struct {
	redact *redact.Redactor
	open   []*growing // in the order in which they began
}

// A growing text has the pieces of one source that were not emitted yet.
type growing struct {
	last   events.Event // the newest delta
	source string
	since  time.Time
	stream *redact.Stream
	safe   string
}

// add takes an event and returns the events to emit now, in order.
func (j *joiner) add(it events.Event) []events.Event {
	source, text, ok := deltaOf(it.Payload)
	if !ok {
		return append(j.end(it), it)
	}
	var due []events.Event
	g := j.of(it.Scope.Parent, source)
	if g == nil {
		due = show(j.open)
		g = &growing{since: it.At, stream: j.redact.Stream()}
		j.open = append(j.open, g)
	}
	if g.safe == "" {
		g.since = it.At
	}
	g.last, g.source = it, source
	g.safe += g.stream.Write(text)
	if len(g.safe) >= joinBytes {
		due = append(due, g.take()...)
	}
	return due
}

// of returns the text of a source in a session.
func (j *joiner) of(session, source string) *growing {
	for _, g := range j.open {
		if g.last.Scope.Parent == session && g.source == source {
			return g
		}
	}
	return nil
}

// end emits the open texts that must precede another event, and closes the texts that the event ends.
func (j *joiner) end(by events.Event) []events.Event {
	var due []events.Event
	var still []*growing
	for _, g := range j.open {
		if endsWith(g.last, by) {
			g.safe += g.stream.Flush()
		} else {
			still = append(still, g)
		}
		due = append(due, g.take()...)
	}
	j.open = still
	return due
}

// endsWith reports whether an event ends a text.
func endsWith(text, by events.Event) bool {
	output, isOutput := text.Payload.(events.CallOutput)
	switch p := by.Payload.(type) {
	case events.CallFinished:
		return isOutput && output.ID == p.ID
	case events.StepFinished, events.Reset:
		return !isOutput && text.Scope.Parent == by.Scope.Parent
	case events.RunFinished:
		return true
	}
	return false
}

// ripe returns texts that have waited long enough.
func (j *joiner) ripe(now time.Time) []events.Event {
	var old []*growing
	for _, g := range j.open {
		if now.Sub(g.since) >= joinFor {
			old = append(old, g)
		}
	}
	return show(old)
}

func show(texts []*growing) []events.Event {
	var due []events.Event
	for _, g := range texts {
		due = append(due, g.take()...)
	}
	return due
}

// flush returns all remaining texts.
func (j *joiner) flush() []events.Event {
	for _, g := range j.open {
		g.safe += g.stream.Flush()
	}
	return show(j.open)
}

// take returns the text that may be emitted, in pieces of bounded size.
func (g *growing) take() []events.Event {
	var out []events.Event
	for g.safe != "" {
		end := min(len(g.safe), maxBytes)
		for end < len(g.safe) && end > 1 && !utf8.RuneStart(g.safe[end]) {
			end--
		}
		it := g.last
		it.Payload = withText(it.Payload, g.safe[:end])
		out = append(out, it)
		g.safe = g.safe[end:]
	}
	return out
}

// MaxFile is the size of each of the two files of a File.
const MaxFile = 4 << 20

// The names of the files, in the order in which they are read.
const (
	earlierFile = "1-earlier.jsonl"
	latestFile  = "2-latest.jsonl"
)

// A File stores lines in a directory: the newest ones, at least MaxFile and at most twice as many bytes. It is not
// synced to the disk, because it is only read after the end. After an error, for example because the disk is full, it
// stores nothing more.
type File struct {
	dir    string
	max    int64
	latest *os.File
	size   int64
	err    error
}

var _ io.Writer = (*File)(nil)

// OpenFile creates the directory if it does not exist, and appends to the lines of an earlier runner.
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
