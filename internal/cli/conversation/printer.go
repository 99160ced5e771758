// Package conversation prints the events of a Run, which internal/cli/transcript reads from the log, as a conversation
// for users. Its only I/O is a given writer.
package conversation

import (
	"bytes"
	"cmp"
	"io"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/internal/cli/transcript"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/runner/events"
)

// Options configure a Printer.
type Options struct {
	Out io.Writer
	// Width is how many characters a line of arguments, of a result or of a message has;
	// 0 is 100. Text of the model is printed whole.
	Width int
	// Wrap breaks lines at words, so that none is longer than Width. The last word of a text that is
	// being streamed is held back.
	Wrap bool
	// Color marks speakers with the escape sequences of a terminal.
	Color bool
	// JSON writes the lines of the log unchanged.
	JSON bool
	// Prefix, such as the node of a workflow, begins each line. With it only whole lines
	// are written, so that several Printers can share a writer.
	Prefix string
	// NamesRequests prints only that a request exists. Its text is printed where the user decides.
	NamesRequests bool
	// Check returns the fault of a request in the log; empty: it has none. Nil: requests are not checked.
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
	opts   Options
	reader *transcript.Reader
	// out is output that is not yet written to Options.Out.
	out       bytes.Buffer
	lineStart bool
	attempt   int
	// open is the text that is being streamed.
	open source
	// output is the printed output of each running tool call.
	output map[string]shownOutput
	// indent is the indentation of the session, hang that of continuation lines.
	indent, hang string
	wrap         wrap
	err          error
}

// A source is a stream of text: of a session or a tool call, with the kind of text.
type source struct{ id, kind string }

// A shownOutput is the printed output of a running tool call.
type shownOutput struct {
	lines int
	// text is the beginning of the output that was printed whole.
	text  string
	isCut bool
}

// New returns a Printer.
func New(o Options) *Printer {
	o.Width = cmp.Or(o.Width, 100)
	p := &Printer{opts: o, lineStart: true, output: map[string]shownOutput{}}
	reader := transcript.Options{Sink: p, Check: o.Check}
	if o.JSON {
		reader.Lines = p.passLine
	}
	p.reader = transcript.NewReader(reader)
	return p
}

// Write prints the complete lines of the log, and returns the errors of Options.Out.
func (p *Printer) Write(log []byte) (int, error) {
	_, _ = p.reader.Write(log) // it returns no error
	p.flush()
	return len(log), p.err
}

// LastTime returns the time of the last event, from which a reconnect reads again.
func (p *Printer) LastTime() time.Time { return p.reader.LastTime() }

// Reconnect forgets the beginning of a line that the end of a stream cut. The line comes
// whole when the log is read again.
func (p *Printer) Reconnect() { p.reader.Reconnect() }

// EndLog prints the incomplete last line of a pod's log, so that the log of the next pod begins with a new line.
func (p *Printer) EndLog() error {
	p.reader.EndLog()
	p.flush()
	return p.err
}

// Err returns the error of Options.Out. Nothing is printed after an error.
func (p *Printer) Err() error { return p.err }

// Close prints the incomplete last line of the log, and ends the line.
func (p *Printer) Close() error {
	_ = p.EndLog() // the error is returned below
	p.endText()
	p.flush()
	return p.err
}

// Add prints an entry of the transcript. It implements transcript.Sink.
func (p *Printer) Add(e transcript.Entry) {
	if e.Attempt != p.attempt {
		p.endText()
		clear(p.output)
		p.attempt = e.Attempt
	}
	p.indent = strings.Repeat("  ", min(max(e.Scope.Depth, 0), 8)) // the log says any number
	p.printFact(e)
}

func (p *Printer) passLine(line []byte) {
	p.out.Write(line)
	p.out.WriteByte('\n')
}

// warn prints a warning in full.
func (p *Printer) warn(text string) {
	const limit = 1000
	p.endText()
	p.mark(yellow, "! ")
	p.put(yellow, untrusted.Line(text, limit))
	p.endText()
}

// mark begins a text. Its further lines are indented as the mark is wide.
func (p *Printer) mark(style, mark string) {
	p.put(style, mark)
	p.endWord()
	p.hang = "  "
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
		p.mark(style, mark)
		p.open = from
	}
	p.put(style, untrusted.Text(text))
}

// maxTurn is how much of the id of a turn is printed: more than an id has.
const maxTurn = 128

// A textStyle is how a text of the model is printed.
type textStyle struct{ style, mark string }

// streamTurn continues a text of a turn of the model, or begins it with the id of the turn.
func (p *Printer) streamTurn(e transcript.Entry, turn string, s textStyle, text string) {
	mark := s.mark
	if turn != "" {
		mark += untrusted.Line(turn, maxTurn) + " "
	}
	p.stream(source{e.Scope.Parent, s.mark}, s.style, mark, text)
}

// endText ends the line of the text that is being streamed.
func (p *Printer) endText() {
	p.endWord()
	p.open, p.hang = source{}, ""
	if !p.lineStart {
		p.put("", "\n")
	}
}

// put appends text to the output. Each line begins with the prefix and the indentation.
func (p *Printer) put(style, text string) {
	for text != "" {
		line, rest, ended := strings.Cut(text, "\n")
		switch {
		case line == "":
		case p.opts.Wrap:
			p.putWords(style, line)
		default:
			p.putInLine(style, line)
		}
		if ended {
			p.endWord()
			p.out.WriteByte('\n')
			p.lineStart = true
		}
		text = rest
	}
}

func (p *Printer) putInLine(style, text string) {
	if p.lineStart {
		p.startLine()
	}
	p.styled(style, text)
}

func (p *Printer) startLine() {
	p.lineStart = false
	p.out.WriteString(p.opts.Prefix)
	p.out.WriteString(p.indent)
	p.out.WriteString(p.hang)
	p.wrap.column = p.margin()
}

func (p *Printer) styled(style, text string) {
	if style == "" || !p.opts.Color {
		p.out.WriteString(text)
		return
	}
	p.out.WriteString(style)
	p.out.WriteString(text)
	p.out.WriteString(reset)
}

// flush writes the output: all of it, or, if lines have a prefix, only complete lines.
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
