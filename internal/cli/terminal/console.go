package terminal

import (
	"bytes"
	"io"
	"os"
	"sync"

	"github.com/deckhand-dev/deckhand/internal/cli/conversation"
)

// A Console is written by several conversations at the same time. A line that one of them has
// begun is ended before another writes.
type Console struct {
	mu sync.Mutex
	// open is the stream whose last line is not ended, or nil.
	open *Stream
	// Status is below the conversations while no line is open; nil: there is none.
	Status *StatusLine
}

// A Stream writes to a console.
type Stream struct {
	console *Console
	out     io.Writer
	// ended is whether another stream ended the line of this one.
	ended bool
}

// Stream returns a writer for one conversation that writes to out.
func (c *Console) Stream(out io.Writer) *Stream { return &Stream{console: c, out: out} }

func (s *Stream) Write(text []byte) (int, error) {
	s.console.mu.Lock()
	defer s.console.mu.Unlock()
	s.console.eraseStatus()
	defer s.console.drawStatus()
	if err := s.console.endLine(s); err != nil {
		return 0, err
	}
	rest := text
	if s.ended && len(rest) > 0 {
		s.ended, rest = false, bytes.TrimPrefix(rest, []byte{'\n'})
	}
	if len(rest) == 0 {
		return len(text), nil
	}
	s.console.open = nil
	if rest[len(rest)-1] != '\n' {
		s.console.open = s
	}
	n, err := s.out.Write(rest)
	return len(text) - len(rest) + n, err
}

// endLine ends the line that another stream has begun.
func (c *Console) endLine(next *Stream) error {
	if c.open == nil || c.open == next {
		return nil
	}
	_, err := c.open.out.Write([]byte{'\n'})
	c.open.ended, c.open = true, nil
	return err
}

// Say writes a line to out, unless the text is empty. The text is made when no other writes.
func (c *Console) Say(out io.Writer, text func() string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	line := text()
	if line == "" {
		return
	}
	_ = c.endLine(nil)                    // as in Hold
	_, _ = io.WriteString(out, line+"\n") // an error shows when a conversation is printed
}

// Hold keeps all streams from writing until release, for example while the user is asked.
func (c *Console) Hold() {
	c.mu.Lock()
	c.eraseStatus()
	_ = c.endLine(nil) // an error shows when the stream writes again
}

// Release ends Hold.
func (c *Console) Release() { c.mu.Unlock() }

// SetStatus draws a status line; empty erases it.
func (c *Console) SetStatus(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.Status == nil {
		return
	}
	c.Status.text = text
	if text == "" {
		c.eraseStatus()
	}
	c.drawStatus()
}

func (c *Console) eraseStatus() {
	if c.Status != nil {
		c.Status.erase()
	}
}

// drawStatus draws the status line. A line that is open is not ended for it.
func (c *Console) drawStatus() {
	if c.Status != nil && c.open == nil {
		c.Status.draw()
	}
}

// clearLine moves to the beginning of the line and erases it (ECMA-48, CR and Erase in Line).
const clearLine = "\r\x1b[2K"

// A StatusLine is the last line of a terminal, which is redrawn in place. Only a console uses it.
type StatusLine struct {
	out io.Writer
	// columns returns how wide the terminal is; 0: unknown.
	columns func() int
	text    string
	isDrawn bool
}

// NewStatusLine returns a status line; nil: conversations do not go to a terminal, or it has no line
// that can be redrawn.
func NewStatusLine(s *Streams) *StatusLine {
	if os.Getenv("TERM") == "dumb" || !IsTerminal(s.Out) || !IsTerminal(s.Err) {
		return nil
	}
	return &StatusLine{out: s.Err, columns: func() int { return columns(s.Err) }}
}

// draw draws a text, or the last one again.
func (s *StatusLine) draw() {
	width := s.columns() - 1 // a full line would move the cursor on some terminals
	if width < 1 || s.text == "" {
		return
	}
	_, _ = io.WriteString(s.out, clearLine+conversation.Fit(s.text, width)) // an error shows when a conversation is printed
	s.isDrawn = true
}

func (s *StatusLine) erase() {
	if s.isDrawn {
		_, _ = io.WriteString(s.out, clearLine) // as above
		s.isDrawn = false
	}
}
