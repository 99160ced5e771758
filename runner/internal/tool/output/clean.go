package output

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// Bounds of what is buffered until more output follows.
const (
	maxLine   = 64 << 10 // bytes of a line that may still be overwritten
	maxEscape = 4 << 10  // bytes of an escape sequence; longer ones are text
)

const escape = 0x1b

// A Cleaner converts the output of a program to text as a terminal would show it:
// without escape sequences and control characters, and with only the last state of
// a line that is overwritten. Invalid UTF-8 becomes U+FFFD. The zero value is ready
// to use.
type Cleaner struct {
	line    []byte // since the last line end
	out     []byte
	partial []byte // the beginning of a character or an escape sequence
	// returned is set after a carriage return: the next text overwrites the line.
	returned bool
}

// Write adds output and returns the lines that are complete. An incomplete line is
// kept, because it may be overwritten. The result is valid until the next call.
func (c *Cleaner) Write(p []byte) []byte {
	c.out = c.out[:0]
	if len(c.partial) > 0 {
		p = append(c.partial, p...)
		c.partial = nil
	}
	for len(p) > 0 {
		n := c.consume(p)
		if n == 0 { // more has to come
			c.partial = bytes.Clone(p)
			break
		}
		p = p[n:]
	}
	return c.out
}

// Flush returns the incomplete line.
func (c *Cleaner) Flush() []byte {
	c.out = c.out[:0]
	if len(c.partial) > 0 && c.partial[0] != escape {
		c.appendText([]byte(string(utf8.RuneError)))
	}
	c.partial = nil
	c.release()
	return c.out
}

// Pending returns the incomplete line without removing it. The result is valid until
// the next call.
func (c *Cleaner) Pending() []byte { return c.line }

// consume processes the beginning of p and returns how many bytes it has used; 0 if
// more are needed.
func (c *Cleaner) consume(p []byte) int {
	if n := plainLength(p); n > 0 {
		c.appendText(p[:n])
		return n
	}
	switch b := p[0]; {
	case b == '\n':
		c.returned = false
		c.line = append(c.line, '\n')
		c.release()
	case b == '\r':
		c.returned = true
	case b == '\b':
		c.line = c.line[:len(c.line)-lastLength(c.line)]
	case b == escape:
		return escapeLength(p)
	case b < ' ' || b == 0x7f: // not for reading
	default:
		return c.character(p)
	}
	return 1
}

// plainLength returns how many bytes at the beginning are printable ASCII.
func plainLength(p []byte) int {
	for i, b := range p {
		if b >= 0x7f || b < ' ' && b != '\t' {
			return i
		}
	}
	return len(p)
}

// character processes one character that is not ASCII.
func (c *Cleaner) character(p []byte) int {
	if !utf8.FullRune(p) {
		return 0
	}
	r, n := utf8.DecodeRune(p)
	switch {
	case r == utf8.RuneError && n == 1:
		c.appendText([]byte(string(utf8.RuneError)))
	case r >= 0x80 && r < 0xa0: // control characters as well
	default:
		c.appendText(p[:n])
	}
	return n
}

// appendText appends to the line, or replaces it after a carriage return.
func (c *Cleaner) appendText(text []byte) {
	if c.returned {
		c.line, c.returned = c.line[:0], false
	}
	c.line = append(c.line, text...)
	if len(c.line) > maxLine {
		c.release()
	}
}

func (c *Cleaner) release() {
	c.out = append(c.out, c.line...)
	c.line = c.line[:0]
}

// lastLength returns the length of the last character of a line.
func lastLength(line []byte) int {
	if len(line) == 0 {
		return 0
	}
	_, n := utf8.DecodeLastRune(line)
	return n
}

// escapeLength returns the length of the escape sequence at the beginning of p; 0 if
// it is incomplete; 1 if it is not a valid sequence.
func escapeLength(p []byte) int {
	if len(p) < 2 {
		return 0
	}
	switch b := p[1]; {
	case b == '[':
		return csiLength(p, 2, func(b byte) bool { return b >= 0x40 && b <= 0x7e })
	case b == ']' || b == 'P' || b == 'X' || b == '^' || b == '_':
		return stringLength(p)
	case b >= 0x20 && b <= 0x2f:
		return csiLength(p, 1, func(b byte) bool { return b >= 0x30 && b <= 0x7e })
	case b >= 0x30 && b <= 0x7e:
		return 2
	}
	return 1
}

// csiLength returns the length of a sequence that ends with a final byte.
func csiLength(p []byte, from int, final func(byte) bool) int {
	for i, b := range p[from:] {
		switch {
		case final(b):
			return from + i + 1
		case b < 0x20 || b > 0x7e || i > maxEscape:
			return 1
		}
	}
	return 0
}

// stringLength returns the length of a sequence that contains a string, such as a
// title. It is invalid if it contains a line end or another sequence.
func stringLength(p []byte) int {
	for i, b := range p[2:] {
		end := 2 + i + 1
		switch {
		case b == '\a':
			return end
		case b == escape && end == len(p):
			return 0
		case b == escape && p[end] == '\\':
			return end + 1
		case b == escape || b == '\n' || i > maxEscape:
			return 1
		}
	}
	return 0
}

// Clean converts a complete output to text.
func Clean(p []byte) string {
	var c Cleaner
	text := string(c.Write(p))
	return text + string(c.Flush())
}

// A Clip keeps the beginning and the end of a text.
type Clip struct {
	half     int
	head     []byte
	headLeft int // characters that still fit into the head
	tail     []byte
	total    int // characters
}

// NewClip returns a Clip of at most most characters.
func NewClip(most int) *Clip { return &Clip{half: most / 2, headLeft: most / 2} }

// Write appends valid UTF-8 of complete characters.
func (c *Clip) Write(text []byte) {
	c.total += utf8.RuneCount(text)
	for c.headLeft > 0 && len(text) > 0 {
		_, n := utf8.DecodeRune(text)
		c.head = append(c.head, text[:n]...)
		text = text[n:]
		c.headLeft--
	}
	// Truncate the tail when it is longer than two tails of the longest characters.
	if most := 2 * utf8.UTFMax * c.half; len(text) > most {
		c.tail, text = c.tail[:0], text[start(text, c.half):]
	} else if len(c.tail)+len(text) > most {
		c.tail = append(c.tail[:0], c.tail[start(c.tail, c.half):]...)
	}
	c.tail = append(c.tail, text...)
}

// Cut returns how many characters are not kept.
func (c *Clip) Cut() int { return max(0, c.total-2*c.half) }

// Ends returns the beginning and the end. If nothing was cut they are the complete
// text.
func (c *Clip) Ends() (head, tail string) {
	return string(c.head), string(c.tail[start(c.tail, c.half):])
}

// start returns the offset of the last n characters of a text.
func start(text []byte, characters int) int {
	at := len(text)
	for at > 0 && characters > 0 {
		_, n := utf8.DecodeLastRune(text[:at])
		at -= n
		characters--
	}
	return at
}

// Ended describes how a program ended, for the last line of a result.
func Ended(e sandbox.Exit, limit time.Duration) string {
	switch e.Cause {
	case sandbox.TimedOut:
		return fmt.Sprintf("killed: timed out after %s", Seconds(limit))
	case sandbox.TooManyProcesses:
		return "killed: more processes or threads at once than it may have"
	case sandbox.OutOfMemory:
		return "killed: out of memory"
	case sandbox.Canceled:
		return "killed: canceled"
	case sandbox.SandboxLost:
		return "killed: " + e.Detail
	case sandbox.Exited:
	}
	if e.Signal != "" {
		return "killed: " + e.Signal
	}
	return fmt.Sprintf("exit code: %d", e.Code)
}

// Failed reports whether a program was killed, or exited with a code other than 0.
func Failed(e sandbox.Exit) bool {
	return e.Cause != sandbox.Exited || e.Signal != "" || e.Code != 0
}

// Unstarted describes why the sandbox did not start a command.
func Unstarted(err error) string {
	if lost, ok := errors.AsType[*sandbox.LostError](err); ok {
		return "The command may or may not have begun: " + lost.Error()
	}
	if refused, ok := errors.AsType[*sandbox.RefusedError](err); ok {
		err = refused
	}
	return "Not executed: " + err.Error()
}

// Lost describes the effect of the end of the sandbox on a command.
func Lost(e sandbox.Exit) string {
	return e.Detail + "; this was killed with it and may have partly happened"
}

// Until introduces the output before a failure.
func Until(text string) string {
	if text == "" {
		return ""
	}
	return "The output until then:\n" + text
}

// Dropped describes output that was not read; empty if there is none.
func Dropped(e sandbox.Exit) string {
	if e.Dropped == 0 {
		return ""
	}
	return fmt.Sprintf("[It printed %d more bytes, which were not read.]", e.Dropped)
}

// Seconds formats a duration as the arguments of calls have them.
func Seconds(d time.Duration) string { return fmt.Sprintf("%gs", d.Seconds()) }

// Interrupted describes why a call ends before its program. It returns an error if
// the call must not have a result, because another attempt may produce it.
func Interrupted(ctx context.Context) (string, error) {
	cause := context.Cause(ctx)
	end, ok := errors.AsType[*task.EndError](cause)
	switch {
	case !ok:
		return "interrupted", nil
	case end.Reason == task.ReasonInterrupted:
		return "interrupted by shutdown", nil
	case end.Reason == task.ReasonDurationLimit:
		return "interrupted: " + end.Message, nil
	}
	return "", cause
}

// Lines joins the parts of a result that are not empty, each on its own lines.
func Lines(parts ...string) string {
	var text strings.Builder
	for _, part := range parts {
		if part == "" {
			continue
		}
		if text.Len() > 0 && !strings.HasSuffix(text.String(), "\n") {
			text.WriteByte('\n')
		}
		text.WriteString(part)
	}
	return text.String()
}
