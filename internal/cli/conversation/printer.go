package conversation

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/internal/untrusted"
	"github.com/deckhand-dev/deckhand/runner/events"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// Options say where and how a conversation is printed.
type Options struct {
	Out io.Writer
	// Width is how many characters a line of arguments, of a result or of a message has;
	// 0 is 100. Text of the model is printed whole.
	Width int
	// Color marks who speaks with escape sequences of a terminal.
	Color bool
	// JSON writes the lines of the log as they are.
	JSON bool
	// Prefix, such as the node of a workflow, begins each line. With it only whole lines
	// are written, so that several Printers can share a writer.
	Prefix string
	// Check returns what is wrong with a request of the log; empty: nothing. If it is nil, requests
	// are not checked.
	Check func(events.Pending) string
}

// Escape sequences of terminals (ECMA-48, Select Graphic Rendition).
const (
	reset  = "\x1b[0m"
	bold   = "\x1b[1m"
	dim    = "\x1b[2m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	cyan   = "\x1b[36m"
)

// A Printer prints the conversation of one Run. Its Write accepts the log in pieces of any
// size. Text of models, tools and users is made harmless for a terminal.
type Printer struct {
	opts Options
	// partial is the beginning of a line of the log, and isTooLong is whether it is not kept.
	partial   []byte
	isTooLong bool
	// out is what is not yet written to Options.Out.
	out       bytes.Buffer
	lineStart bool
	// last is the number of the last event of each attempt: a line that is read again
	// after a reconnect is not printed again.
	last     map[int]int64
	lastTime time.Time
	attempt  int
	// open is the text that is being streamed.
	open source
	// sessions are the sessions of which events were seen, by name.
	sessions map[string]*session
	// refused are the hosts that commands were refused, of all attempts.
	refused map[string]bool
	// denied is how many calls of each tool were denied, in all attempts.
	denied map[string]int
	// indent is the indentation of the session, hang that of the further lines of a text.
	indent, hang string
	// answer is the last text of the Run's own agent.
	answer string
	newer  bool
	err    error
}

// A source is what streams text: a session or a tool call, and the kind of text.
type source struct{ id, kind string }

// A session is what is known of one agent session.
type session struct {
	// text and thinking are whether the current step was printed from its deltas.
	text, thinking bool
	// output is how many lines of output each running tool call has printed.
	output map[string]int
	// requested are the calls that the model requested and that have not started.
	requested map[string]step.Call
}

// New returns a Printer.
func New(o Options) *Printer {
	o.Width = cmp.Or(o.Width, 100)
	return &Printer{opts: o, lineStart: true, last: map[int]int64{}, sessions: map[string]*session{}, refused: map[string]bool{}, denied: map[string]int{}}
}

// LastTime is the time of the last event: what a reconnect reads again begins there.
func (p *Printer) LastTime() time.Time { return p.lastTime }

// Err returns the error of Options.Out, after which nothing is printed.
func (p *Printer) Err() error { return p.err }

// Close prints what the end of the log cut, and ends the last line.
func (p *Printer) Close() error {
	_ = p.EndLog() // the error is returned below
	p.endText()
	p.flush()
	return p.err
}

// printLine prints one line of the log.
func (p *Printer) printLine(line []byte) {
	if len(bytes.TrimSpace(line)) == 0 {
		return
	}
	var e step.Event
	if json.Unmarshal(line, &e) != nil || e.V == 0 || e.Type == "" {
		p.printDiagnostic(line)
		return
	}
	if e.N > 0 && e.N <= p.last[e.Attempt] {
		return
	}
	missing := p.isAfterGap(e)
	p.last[e.Attempt], p.lastTime = max(p.last[e.Attempt], e.N), e.T
	if p.opts.JSON {
		p.passLine(line)
		return
	}
	p.printEvent(e, missing)
}

// isAfterGap is whether events before this one are missing: the kubelet rotates a long log, and
// only its last file can be read. A runner numbers the events of an attempt from 1 and without
// gaps, and announces those that it leaves out itself.
func (p *Printer) isAfterGap(e step.Event) bool {
	return e.N > p.last[e.Attempt]+1 && e.Type != step.EventDropped
}

func (p *Printer) passLine(line []byte) {
	p.out.Write(line)
	p.out.WriteByte('\n')
}

func (p *Printer) printEvent(e step.Event, afterGap bool) { //nolint:revive // flag-parameter: it is a fact about the event
	if e.Attempt != p.attempt {
		p.startAttempt(e)
	}
	if afterGap {
		p.warn("Events are missing here: of a long log only the last part is kept.")
	}
	p.indent = strings.Repeat("  ", min(e.Scope.Depth, 8))
	if e.V > step.EventVersion && !p.newer {
		p.newer = true
		p.warn("The log has a newer format than this program knows, so some of it may be missing. Install a newer version of the program.")
	}
	printer, known := printers[e.Type]
	if !known || !printer(p, e) {
		p.line(dim, "· ", cmp.Or(e.Message, string(e.Type)))
	}
}

// startAttempt separates the attempts: the sessions of the next are resumed from the journal.
func (p *Printer) startAttempt(e step.Event) {
	clear(p.sessions)
	p.endText()
	p.indent = ""
	if p.attempt != 0 && e.Type != step.EventRunStarted && e.Type != step.EventDropped {
		p.line(dim, "── ", fmt.Sprintf("Attempt %d", e.Attempt))
	}
	p.attempt = e.Attempt
}

func (p *Printer) sessionOf(e step.Event) *session {
	s := p.sessions[e.Scope.Parent]
	if s == nil {
		s = &session{output: map[string]int{}, requested: map[string]step.Call{}}
		p.sessions[e.Scope.Parent] = s
	}
	return s
}

// warn prints the whole of what a user should notice.
func (p *Printer) warn(text string) {
	const limit = 1000
	p.endText()
	p.put(yellow, "! "+untrusted.Line(text, limit)+"\n")
}

// line prints text on one line, cut at the width.
func (p *Printer) line(style, mark, text string) {
	p.endText()
	room := max(p.opts.Width-len(p.indent)-len(mark), 20)
	p.put(style, mark+untrusted.Line(text, room)+"\n")
}

// stream continues the text of a source, or begins it with a mark.
func (p *Printer) stream(from source, style, mark, text string) {
	if p.open != from {
		p.endText()
		p.put(style, mark)
		p.open, p.hang = from, "  "
	}
	p.put(style, untrusted.Text(text))
}

// endText ends the line of the text that is being streamed.
func (p *Printer) endText() {
	p.open, p.hang = source{}, ""
	if !p.lineStart {
		p.put("", "\n")
	}
}

// put appends text to the output. Each line begins with the prefix and the indentation.
func (p *Printer) put(style, text string) {
	for text != "" {
		line, rest, ended := strings.Cut(text, "\n")
		if line != "" {
			p.putInLine(style, line)
		}
		if ended {
			p.out.WriteByte('\n')
			p.lineStart = true
		}
		text = rest
	}
}

func (p *Printer) putInLine(style, text string) {
	if p.lineStart {
		p.lineStart = false
		p.out.WriteString(p.opts.Prefix)
		p.out.WriteString(p.indent)
		p.out.WriteString(p.hang)
	}
	if style == "" || !p.opts.Color {
		p.out.WriteString(text)
		return
	}
	p.out.WriteString(style)
	p.out.WriteString(text)
	p.out.WriteString(reset)
}

// flush writes the output: all of it, or with a prefix only whole lines.
func (p *Printer) flush() {
	ready := p.out.Bytes()
	if p.opts.Prefix != "" {
		ready = ready[:bytes.LastIndexByte(ready, '\n')+1]
	}
	if len(ready) == 0 || p.err != nil {
		return
	}
	_, p.err = p.opts.Out.Write(ready)
	p.out.Next(len(ready))
}
