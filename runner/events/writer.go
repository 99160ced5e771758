package events

import (
	"encoding/json"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/deckhand-dev/deckhand/runner/redact"
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

// Options say whose events are written, where and how.
type Options struct {
	Out     io.Writer
	Run     string
	Attempt int
	// After is the number of the last event before the first of this Writer.
	After  int64
	Mode   Mode
	Redact *redact.Redactor
	Now    func() time.Time
}

// First is After for an attempt that was restarted so many times. It needs to
// know nothing of what was written before, because each attempt and each
// restart has numbers of its own, ever higher; the step from one to the next
// is announced as dropped.
func First(attempt, restarts int) int64 {
	const perAttempt, perRestart = 1_000_000_000, 1_000_000
	return int64(attempt-1)*perAttempt + int64(restarts)*perRestart
}

// queueSize is how many events may wait for a slow reader before some are
// dropped.
const queueSize = 1024

// A Writer writes events as lines, in the background.
type Writer struct {
	opts    Options
	queue   chan item
	dropped atomic.Int64
	stop    chan struct{}
	done    chan struct{}
	once    sync.Once
}

type item struct {
	at      time.Time
	message string
	payload Payload
}

// New starts a Writer.
func New(o Options) *Writer {
	w := &Writer{opts: o, queue: make(chan item, queueSize), stop: make(chan struct{}), done: make(chan struct{})}
	go w.loop()
	return w
}

// Emit queues an event; message says it in words. It never blocks. After Close
// it does nothing.
func (w *Writer) Emit(message string, p Payload) {
	if !w.opts.Mode.shows(p) {
		return
	}
	select {
	case w.queue <- item{at: w.opts.Now().UTC(), message: message, payload: p}:
	default:
		w.dropped.Add(1)
	}
}

// Close waits until what is queued is written, or gives up after a while: a
// reader that has gone to sleep must not keep the pod.
func (w *Writer) Close(patience time.Duration) {
	w.once.Do(func() { close(w.stop) })
	select {
	case <-w.done:
	case <-time.After(patience):
	}
}

func (m Mode) shows(p Payload) bool {
	switch m {
	case None:
		return false
	case Steps:
		_, isDelta := p.(delta)
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
		p.print(item{at: w.opts.Now().UTC(), message: "Events of an earlier runner may be missing", payload: Dropped{From: 1, To: p.n}})
	}
	timer := time.NewTimer(joinFor)
	for {
		select {
		case it := <-w.queue:
			w.write(p, j, it)
		case <-timer.C:
			p.printAll(j.ripe(w.opts.Now()))
			timer.Reset(joinFor)
		case <-w.stop:
			w.drain(p, j)
			return
		}
	}
}

// drain writes what is still queued.
func (w *Writer) drain(p *printer, j *joiner) {
	for {
		select {
		case it := <-w.queue:
			w.write(p, j, it)
		default:
			p.printAll(j.flush())
			return
		}
	}
}

func (w *Writer) write(p *printer, j *joiner, it item) {
	p.gap(w.dropped.Swap(0), it.at)
	p.printAll(j.add(it))
}

// A printer numbers events and writes them as lines.
type printer struct {
	opts Options
	n    int64
}

func (p *printer) printAll(items []item) {
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
	p.print(item{at: at, message: "The reader was too slow; events are missing", payload: Dropped{From: first, To: p.n}})
}

// print writes one line. A reader that has gone away is no reason to stop.
func (p *printer) print(it item) {
	p.n++
	data, err := json.Marshal(it.payload)
	if err != nil {
		data = nil
	}
	line, err := json.Marshal(step.Event{
		V: step.EventVersion, N: p.n, T: it.at,
		Run: p.opts.Run, Attempt: p.opts.Attempt,
		Type:    it.payload.EventType(),
		Message: redact.Printable(p.opts.Redact.String(it.message)),
		Data:    p.opts.Redact.JSON(data),
	})
	if err != nil {
		return
	}
	_, _ = p.opts.Out.Write(append(line, '\n'))
}
