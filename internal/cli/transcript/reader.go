// Package transcript reads the log of a Run and returns its events as typed values, in the order of the log. It has no
// layout and no I/O: internal/cli/conversation prints the values.
package transcript

import (
	"bytes"
	"cmp"
	"encoding/json"
	"time"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// Options configure a Reader.
type Options struct {
	Sink Sink
	// Lines gets each line of the log once, and the Sink gets nothing; nil: the Sink gets entries.
	Lines func(line []byte)
	// Check returns the fault of a request in the log; empty: it has none. Nil: requests are not checked. A program
	// that writes a log can write any request into it.
	Check func(events.Pending) string
}

// A Reader reads the log of one Run. Its Write accepts the log in pieces of any size.
type Reader struct {
	opts Options
	// partial is the beginning of an incomplete line. isTooLong means that the line is too long and is dropped.
	partial   []byte
	isTooLong bool
	// last is the number of the last event of each attempt. Lines that are read again after a reconnect are skipped.
	last     map[int]int64
	lastTime time.Time
	attempt  int
	// sessions are the sessions with events, by name.
	sessions map[string]*session
	// refused are the hosts of refused connections of commands, in all attempts.
	refused map[string]bool
	// denied is how many calls of each tool were denied, in all attempts.
	denied map[string]int
	// answer is the last text of the Run's own agent.
	answer string
	newer  bool
	// begun is whether the pod has written an event, and held are the warnings that it logged before.
	begun bool
	held  []Fact
}

// A session is the state of one agent session.
type session struct {
	// turn is the id of the current turn of the model; empty: not known.
	turn string
	// text and thinking are whether deltas of the current turn were seen.
	text, thinking bool
	// requested are the calls that the model requested and that have not started.
	requested map[string]step.Call
}

// NewReader returns a Reader.
func NewReader(o Options) *Reader {
	return &Reader{opts: o, last: map[int]int64{}, sessions: map[string]*session{}, refused: map[string]bool{}, denied: map[string]int{}}
}

// LastTime returns the time of the last event, from which a reconnect reads again.
func (r *Reader) LastTime() time.Time { return r.lastTime }

// Write reads the complete lines of the log. It returns no error.
func (r *Reader) Write(log []byte) (int, error) {
	for rest := log; len(rest) > 0; {
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			r.keep(rest)
			break
		}
		line := rest[:end]
		rest = rest[end+1:]
		if r.isTooLong {
			r.isTooLong = false
			continue
		}
		if len(r.partial) > 0 {
			line = append(r.partial, line...)
			r.partial = r.partial[:0]
		}
		r.readLine(line)
	}
	return len(log), nil
}

// MaxLine bounds a line of a log, in bytes: far more than any event has.
const MaxLine = 16 << 20

// keep keeps the beginning of a line. A custom runner may write lines that do not end.
func (r *Reader) keep(beginning []byte) {
	switch {
	case r.isTooLong:
	case len(r.partial)+len(beginning) > MaxLine:
		r.partial, r.isTooLong = nil, true
		r.addOutside(Warning{"A line of the log is longer than 16 MiB and is left out."})
	default:
		r.partial = append(r.partial, beginning...)
	}
}

// Reconnect forgets the beginning of a line that the end of a stream cut, and the warnings before the
// first event. They come whole when the log is read again.
func (r *Reader) Reconnect() { r.partial, r.isTooLong, r.held = r.partial[:0], false, nil }

// EndLog reads the incomplete last line of a pod's log, so that the log of the next pod begins with a new line.
func (r *Reader) EndLog() {
	if len(r.partial) > 0 {
		r.readLine(r.partial)
		r.partial = nil
	}
	r.release()
	r.begun = false
}

// readLine reads one line of the log.
func (r *Reader) readLine(line []byte) {
	if len(bytes.TrimSpace(line)) == 0 {
		return
	}
	var e events.Line
	if json.Unmarshal(line, &e) != nil || e.V == 0 || e.Type == "" {
		r.readDiagnostic(line)
		return
	}
	if e.N > 0 && e.N <= r.last[e.Attempt] {
		return
	}
	missing := r.isAfterGap(e)
	r.last[e.Attempt], r.lastTime = max(r.last[e.Attempt], e.N), e.T
	if r.opts.Lines != nil {
		r.opts.Lines(line)
		return
	}
	r.readEvent(e, missing)
}

// isAfterGap reports whether events before this one are missing: the kubelet rotates a long log, and only its last file
// can be read. A runner numbers the events of an attempt from 1 without gaps, and announces the events that it leaves
// out itself.
func (r *Reader) isAfterGap(e events.Line) bool {
	return e.N > r.last[e.Attempt]+1 && e.Type != step.EventDropped
}

func (r *Reader) readEvent(e events.Line, afterGap bool) { //nolint:revive // flag-parameter: it is a fact about the event
	if e.Attempt != r.attempt {
		r.startAttempt(e)
	}
	if afterGap {
		r.add(e, Gap{})
	}
	if e.V > events.LineVersion && !r.newer {
		r.newer = true
		r.add(e, Warning{"The log has a newer format than this program knows, so some of it may be missing. Install a newer version of the program."})
	}
	read, known := readers[e.Type]
	if !known || !read(r, e) {
		r.add(e, Note{cmp.Or(e.Message, string(e.Type))})
	}
	r.begun = true
	r.release()
}

// release adds the warnings that were held until the beginning of the attempt was added.
func (r *Reader) release() {
	held := r.held
	r.held = nil
	for _, fact := range held {
		r.addOutside(fact)
	}
}

// startAttempt begins an attempt: its sessions are resumed from the journal.
func (r *Reader) startAttempt(e events.Line) {
	clear(r.sessions)
	isFirst := r.attempt == 0
	r.attempt = e.Attempt
	if !isFirst && e.Type != step.EventRunStarted && e.Type != step.EventDropped {
		r.addOutside(AttemptContinued{})
	}
}

func (r *Reader) sessionOf(e events.Line) *session {
	s := r.sessions[e.Scope.Parent]
	if s == nil {
		s = &session{requested: map[string]step.Call{}}
		r.sessions[e.Scope.Parent] = s
	}
	return s
}

// add adds a fact of an event.
func (r *Reader) add(e events.Line, fact Fact) {
	r.opts.Sink.Add(Entry{Time: e.T, Run: e.Run, Attempt: e.Attempt, Scope: e.Scope, Message: e.Message, Fact: fact})
}

// addOutside adds a fact that does not come from an event.
func (r *Reader) addOutside(fact Fact) {
	if r.opts.Lines == nil {
		r.opts.Sink.Add(Entry{Attempt: r.attempt, Fact: fact})
	}
}

// A diagnostic is a line that the runner logs for operators of the cluster.
type diagnostic struct {
	Level string `json:"level"`
	Msg   string `json:"msg"`
	Err   string `json:"err"`
	Error string `json:"error"`
	// Audit is set on lines that are not for users: an event has the same information.
	Audit string `json:"audit"`
}

// readDiagnostic reads a line that is not an event. Of the runner's diagnostics it adds warnings
// and errors.
func (r *Reader) readDiagnostic(line []byte) {
	if r.opts.Lines != nil {
		r.opts.Lines(line)
		return
	}
	var d diagnostic
	if json.Unmarshal(line, &d) != nil || d.Msg == "" {
		r.release()
		r.addOutside(Note{string(line)})
		return
	}
	if d.Audit != "" {
		return
	}
	text := d.Msg
	if cause := cmp.Or(d.Err, d.Error); cause != "" {
		text += ": " + cause
	}
	const mostHeld = 20
	switch {
	case d.Level == "WARN" && !r.begun && len(r.held) < mostHeld: // while it prepares the attempt
		r.held = append(r.held, Warning{text})
	case d.Level == "WARN", d.Level == "ERROR":
		r.release()
		r.addOutside(Warning{text})
	}
}
