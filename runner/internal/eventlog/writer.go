// Package eventlog delivers the events of a Run to listeners and writes them to the log, one JSON line of standard
// output per event.
//
// A Writer never delays the loop. Events that it cannot write in time are dropped, which a dropped event reports. It
// joins deltas, numbers events and redacts secrets.
package eventlog

import (
	"encoding/json"
	"io"
	"time"

	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/internal/pubsub"
	"github.com/deckhand-dev/deckhand/runner/internal/redact"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// A Mode decides which events are written.
type Mode string

// The modes.
const (
	Full  Mode = "Full"
	Steps Mode = "Steps" // all but deltas and the output of calls
	None  Mode = "None"
)

// Options configure a Writer.
type Options struct {
	Out     io.Writer
	Run     string
	Attempt int
	// After is the number of the last event before the first of this Writer.
	After  int64
	Mode   Mode
	Redact *redact.Redactor
	Now    func() time.Time
	// Feed has the events to write; nil: the Writer's own.
	Feed *Feed
}

// First returns the number before the first event of an attempt after a number of restarts. Each attempt and each
// restart has its own range of numbers, higher than those before, so that it need not know which events were written.
// The gap to the earlier range is reported as dropped.
func First(attempt, restarts int) int64 {
	const perAttempt, perRestart = 1_000_000_000, 1_000_000
	return int64(attempt-1)*perAttempt + int64(restarts)*perRestart
}

// queueSize is how many events may wait for a slow reader before some are
// dropped.
const queueSize = 1024

// A Writer writes events as lines, in the background. It is one subscriber of a Feed.
type Writer struct {
	*Feed
	opts Options
	in   *pubsub.Subscription[events.Event]
	lost int64 // how many of those dropped are announced
	done chan struct{}
}

// New starts a Writer.
func New(o Options) *Writer {
	if o.Feed == nil {
		o.Feed = NewFeed(o.Now)
	}
	w := &Writer{Feed: o.Feed, opts: o, done: make(chan struct{})}
	w.in = o.Feed.Subscribe(queueSize, func(h events.Event) bool { return o.Mode.shows(h.Payload) })
	go w.loop()
	return w
}

// Close waits until queued events are written, at most as long as timeout: a blocked reader must not keep the pod.
// Events that are emitted later are not written. It returns whether all were written.
func (w *Writer) Close(timeout time.Duration) bool {
	w.in.Close()
	select {
	case <-w.done:
		return true
	case <-time.After(timeout):
		return false
	}
}

func (m Mode) shows(p events.Payload) bool {
	switch m {
	case None:
		return false
	case Steps:
		_, _, isDelta := deltaOf(p)
		return !isDelta
	case Full:
		return true
	}
	return true
}

// loop is the only reader of the queue. The timer shows text that has waited
// long enough for more.
func (w *Writer) loop() {
	defer close(w.done)
	p := &printer{opts: w.opts, n: w.opts.After}
	j := &joiner{redact: w.opts.Redact}
	if w.opts.After > 0 {
		p.print(events.Event{At: w.opts.Now().UTC(), Message: "Events of an earlier runner may be missing", Payload: events.Dropped{From: 1, To: p.n}})
	}
	timer := time.NewTimer(joinFor)
	for {
		select {
		case it, more := <-w.in.C():
			if !more {
				p.printAll(j.flush())
				return
			}
			w.write(p, j, it)
		case <-timer.C:
			p.printAll(j.ripe(w.opts.Now()))
			timer.Reset(joinFor)
		}
	}
}

func (w *Writer) write(p *printer, j *joiner, it events.Event) {
	dropped := w.in.Dropped()
	p.gap(dropped-w.lost, it.At)
	w.lost = dropped
	p.printAll(j.add(it))
}

// A printer numbers events and writes them as lines.
type printer struct {
	opts Options
	n    int64
}

func (p *printer) printAll(items []events.Event) {
	for _, it := range items {
		p.print(it)
	}
}

// gap announces events that were dropped.
func (p *printer) gap(count int64, at time.Time) {
	if count == 0 {
		return
	}
	first := p.n + 1
	p.n += count
	p.print(events.Event{At: at, Message: "The reader was too slow; events are missing", Payload: events.Dropped{From: first, To: p.n}})
}

// print writes one line. A reader that has gone away is no reason to stop.
func (p *printer) print(it events.Event) {
	p.n++
	data, err := json.Marshal(it.Payload)
	if err != nil {
		data = nil
	}
	line, err := json.Marshal(events.Line{
		V: events.LineVersion, N: p.n, T: it.At,
		Run: p.opts.Run, Attempt: p.opts.Attempt, Scope: it.Scope,
		Type:    it.Payload.EventType(),
		Message: redact.Printable(p.opts.Redact.String(it.Message)),
		Data:    p.opts.Redact.JSON(data),
	})
	if err != nil {
		return
	}
	_, _ = p.opts.Out.Write(append(line, '\n'))
}

// A Feed delivers events to listeners. It never waits for them.
type Feed struct {
	bus *pubsub.Bus[events.Event]
	now func() time.Time
}

// NewFeed returns a Feed without listeners.
func NewFeed(now func() time.Time) *Feed {
	return &Feed{bus: pubsub.New[events.Event](), now: now}
}

// Emit delivers an event to all listeners; message describes it. It never blocks.
func (f *Feed) Emit(scope step.Scope, message string, p events.Payload) {
	f.bus.Publish(events.Event{At: f.now().UTC(), Scope: scope, Message: message, Payload: p})
}

// Subscribe opens a queue of size events; keep reports which are wanted, nil: all.
func (f *Feed) Subscribe(size int, keep func(events.Event) bool) *pubsub.Subscription[events.Event] {
	return f.bus.Subscribe(size, keep)
}
