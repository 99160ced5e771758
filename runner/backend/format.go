package backend

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"
)

// Apply returns content that replaces a file of the format, with the byte order mark and the line ends of the file,
// which Read does not show. Content that has "\r\n" itself keeps its line ends. If the line ends of the file are mixed,
// the more frequent one is used, and "\r\n" if both are equally frequent.
func (f Format) Apply(content string) string {
	if content == "" {
		return content
	}
	if f.CRLF > 0 && f.CRLF >= f.LF && !strings.Contains(content, "\r\n") {
		content = strings.ReplaceAll(content, "\n", "\r\n")
	}
	if f.BOM && !strings.HasPrefix(content, string(bom)) {
		content = string(bom) + content
	}
	return content
}

// A formatCounter counts the line ends and the invalid bytes that are written to it.
type formatCounter struct {
	format Format
	ends   int    // "\n", after "\r" or not
	cr     bool   // the last byte was "\r"
	tail   []byte // the beginning of a character, at most 3 bytes
}

// Write implements [io.Writer]. It never fails.
func (c *formatCounter) Write(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	c.ends += bytes.Count(p, []byte("\n"))
	c.format.CRLF += bytes.Count(p, []byte("\r\n"))
	if c.cr && p[0] == '\n' {
		c.format.CRLF++
	}
	c.cr = p[len(p)-1] == '\r'

	whole, tail := cutPartial(slices.Concat(c.tail, p))
	c.tail = slices.Clone(tail)
	c.format.Invalid += invalid(whole)
	return len(p), nil
}

// result returns the format of all that was written.
func (c *formatCounter) result(mark bool) Format {
	f := c.format
	f.BOM = mark
	f.LF = c.ends - f.CRLF
	f.Invalid += int64(len(c.tail))
	return f
}

// cutPartial cuts off the beginning of a character that may go on.
func cutPartial(p []byte) (whole, tail []byte) {
	for n := 1; n < utf8.UTFMax && n <= len(p); n++ {
		if last := p[len(p)-n:]; utf8.RuneStart(last[0]) {
			if utf8.FullRune(last) {
				break
			}
			return p[:len(p)-n], last
		}
	}
	return p, nil
}

// invalid counts the bytes that are not part of a character.
func invalid(p []byte) int64 {
	if utf8.Valid(p) {
		return 0
	}
	n := int64(0)
	for len(p) > 0 {
		r, size := utf8.DecodeRune(p)
		if r == utf8.RuneError && size == 1 {
			n++
		}
		p = p[size:]
	}
	return n
}
