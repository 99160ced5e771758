package output

import (
	"bytes"
	"unicode/utf8"
)

// Bounds of what is held back until the rest comes.
const (
	maxLine   = 64 << 10 // bytes of a line that may still be overwritten
	maxEscape = 4 << 10  // bytes of an escape sequence; what is longer is none
)

const escape = 0x1b

// A Cleaner makes text of what a program prints, as somebody in front of a
// terminal would read it: without escape sequences and control characters, and
// of a line that is written over again and again only the last state. What is
// not valid UTF-8 becomes U+FFFD. The zero value is ready.
type Cleaner struct {
	line    []byte // since the last line end
	out     []byte
	partial []byte // the beginning of a character or an escape sequence
	// returned says that the line goes on from its beginning.
	returned bool
}

// Write takes what was printed, and returns what is text by now. Of a line that
// has not ended it returns nothing: it may still be overwritten. The text is
// valid until the next call.
func (c *Cleaner) Write(p []byte) []byte {
	c.out = c.out[:0]
	if len(c.partial) > 0 {
		p = append(c.partial, p...)
		c.partial = nil
	}
	for len(p) > 0 {
		n := c.take(p)
		if n == 0 { // more has to come
			c.partial = bytes.Clone(p)
			break
		}
		p = p[n:]
	}
	return c.out
}

// Flush returns the rest, of a line that has not ended.
func (c *Cleaner) Flush() []byte {
	c.out = c.out[:0]
	if len(c.partial) > 0 && c.partial[0] != escape {
		c.put([]byte(string(utf8.RuneError)))
	}
	c.partial = nil
	c.release()
	return c.out
}

// Pending is the line that has not ended, as it is now. It is valid until the
// next call.
func (c *Cleaner) Pending() []byte { return c.line }

// take deals with the beginning of p and returns how much of it that was.
func (c *Cleaner) take(p []byte) int {
	if n := plain(p); n > 0 {
		c.put(p[:n])
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
		c.line = c.line[:len(c.line)-last(c.line)]
	case b == escape:
		return sequence(p)
	case b < ' ' || b == 0x7f: // not for reading
	default:
		return c.character(p)
	}
	return 1
}

// plain is how many bytes are text as they are.
func plain(p []byte) int {
	for i, b := range p {
		if b >= 0x7f || b < ' ' && b != '\t' {
			return i
		}
	}
	return len(p)
}

// character takes one character that is not of ASCII.
func (c *Cleaner) character(p []byte) int {
	if !utf8.FullRune(p) {
		return 0
	}
	r, n := utf8.DecodeRune(p)
	switch {
	case r == utf8.RuneError && n == 1:
		c.put([]byte(string(utf8.RuneError)))
	case r >= 0x80 && r < 0xa0: // control characters as well
	default:
		c.put(p[:n])
	}
	return n
}

// put adds to the line, in place of it where it goes on from its beginning.
func (c *Cleaner) put(text []byte) {
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

// last is the length of the last character of a line.
func last(line []byte) int {
	if len(line) == 0 {
		return 0
	}
	_, n := utf8.DecodeLastRune(line)
	return n
}

// sequence is the length of the escape sequence at the beginning of p; 0 when it
// has not ended. What is no sequence loses its first byte only.
func sequence(p []byte) int {
	if len(p) < 2 {
		return 0
	}
	switch b := p[1]; {
	case b == '[':
		return within(p, 2, func(b byte) bool { return b >= 0x40 && b <= 0x7e })
	case b == ']' || b == 'P' || b == 'X' || b == '^' || b == '_':
		return str(p)
	case b >= 0x20 && b <= 0x2f:
		return within(p, 1, func(b byte) bool { return b >= 0x30 && b <= 0x7e })
	case b >= 0x30 && b <= 0x7e:
		return 2
	}
	return 1
}

// within is the length of a sequence that ends with a byte that is final.
func within(p []byte, from int, final func(byte) bool) int {
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

// str is the length of a sequence that holds a text, such as a title. A line end
// or another sequence in it means that it was none.
func str(p []byte) int {
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

// Clean is the text that a whole output amounts to.
func Clean(p []byte) string {
	var c Cleaner
	text := string(c.Write(p))
	return text + string(c.Flush())
}
