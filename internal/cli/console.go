package cli

import (
	"bytes"
	"io"
	"sync"
)

// A console is written by several conversations at the same time. A line that one of them has
// begun is ended before another writes.
type console struct {
	mu sync.Mutex
	// open is the stream whose last line is not ended, or nil.
	open *stream
	// status is below the conversations while no line is open; nil: there is none.
	status *statusLine
}

// A stream writes to a console.
type stream struct {
	console *console
	out     io.Writer
	// ended is whether another stream ended the line of this one.
	ended bool
}

// stream returns a writer for one conversation that writes to out.
func (c *console) stream(out io.Writer) *stream { return &stream{console: c, out: out} }

func (s *stream) Write(text []byte) (int, error) {
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
func (c *console) endLine(next *stream) error {
	if c.open == nil || c.open == next {
		return nil
	}
	_, err := c.open.out.Write([]byte{'\n'})
	c.open.ended, c.open = true, nil
	return err
}

// hold keeps all streams from writing until release, for example while the user is asked.
func (c *console) hold() {
	c.mu.Lock()
	c.eraseStatus()
	_ = c.endLine(nil) // an error shows when the stream writes again
}

func (c *console) release() { c.mu.Unlock() }

// setStatus draws a status line; empty erases it.
func (c *console) setStatus(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.status == nil {
		return
	}
	c.status.text = text
	if text == "" {
		c.eraseStatus()
	}
	c.drawStatus()
}

func (c *console) eraseStatus() {
	if c.status != nil {
		c.status.erase()
	}
}

// drawStatus draws the status line. A line that is open is not ended for it.
func (c *console) drawStatus() {
	if c.status != nil && c.open == nil {
		c.status.draw()
	}
}
