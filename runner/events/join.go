package events

import (
	"time"
	"unicode/utf8"

	"github.com/deckhand-dev/deckhand/runner/internal/redact"
)

// Deltas are joined until they are worth a line.
const (
	joinBytes = 256
	joinFor   = 250 * time.Millisecond
	maxBytes  = 8 << 10 // of one event
)

// A delta is a payload that is a piece of some longer text.
type delta interface {
	Payload
	// source tells apart texts that grow at the same time.
	source() string
	text() string
	with(text string) Payload
}

func (TextDelta) source() string             { return "text" }
func (d TextDelta) text() string             { return d.Text }
func (d TextDelta) with(text string) Payload { d.Text = text; return d }

func (ThinkingDelta) source() string             { return "thinking" }
func (d ThinkingDelta) text() string             { return d.Text }
func (d ThinkingDelta) with(text string) Payload { d.Text = text; return d }

func (d CallOutput) source() string           { return "call " + d.ID }
func (d CallOutput) text() string             { return d.Text }
func (d CallOutput) with(text string) Payload { d.Text = text; return d }

// A joiner collects deltas. What it lets out is redacted, though a secret may
// have come in two pieces.
type joiner struct {
	redact *redact.Redactor
	open   []*growing // in the order in which they began
}

// A growing text is what came of one source and was not shown yet.
type growing struct {
	last   Event // the newest delta
	delta  delta
	since  time.Time
	stream *redact.Stream
	safe   string
}

// add takes a happening and returns those that are due, in order.
func (j *joiner) add(it Event) []Event {
	d, ok := it.Payload.(delta)
	if !ok {
		return append(j.end(it), it)
	}
	var due []Event
	g := j.of(it.Scope.Parent, d.source())
	if g == nil {
		due = show(j.open)
		g = &growing{since: it.At, stream: j.redact.Stream()}
		j.open = append(j.open, g)
	}
	if g.safe == "" {
		g.since = it.At
	}
	g.last, g.delta = it, d
	g.safe += g.stream.Write(d.text())
	if len(g.safe) >= joinBytes {
		due = append(due, g.take()...)
	}
	return due
}

// of is the text of a source in a session.
func (j *joiner) of(session, source string) *growing {
	for _, g := range j.open {
		if g.last.Scope.Parent == session && g.delta.source() == source {
			return g
		}
	}
	return nil
}

// end shows what is open before another event, and closes the texts that the
// event is the end of.
func (j *joiner) end(by Event) []Event {
	var due []Event
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

// endsWith says whether an event is the end of a text.
func endsWith(text, by Event) bool {
	output, isOutput := text.Payload.(CallOutput)
	switch p := by.Payload.(type) {
	case CallFinished:
		return isOutput && output.ID == p.ID
	case StepFinished, Reset:
		return !isOutput && text.Scope.Parent == by.Scope.Parent
	case RunFinished:
		return true
	}
	return false
}

// ripe shows what has waited long enough.
func (j *joiner) ripe(now time.Time) []Event {
	var old []*growing
	for _, g := range j.open {
		if now.Sub(g.since) >= joinFor {
			old = append(old, g)
		}
	}
	return show(old)
}

func show(texts []*growing) []Event {
	var due []Event
	for _, g := range texts {
		due = append(due, g.take()...)
	}
	return due
}

// flush shows everything: nothing more will come.
func (j *joiner) flush() []Event {
	for _, g := range j.open {
		g.safe += g.stream.Flush()
	}
	return show(j.open)
}

// take is what may be shown, in pieces of bounded size.
func (g *growing) take() []Event {
	var out []Event
	for g.safe != "" {
		end := min(len(g.safe), maxBytes)
		for end < len(g.safe) && end > 1 && !utf8.RuneStart(g.safe[end]) {
			end--
		}
		it := g.last
		it.Payload = g.delta.with(g.safe[:end])
		out = append(out, it)
		g.safe = g.safe[end:]
	}
	return out
}
