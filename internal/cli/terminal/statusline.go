package terminal

import (
	"io"
	"os"

	"github.com/deckhand-dev/deckhand/internal/cli/conversation"
)

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
