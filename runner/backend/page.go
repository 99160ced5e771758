package backend

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// bom is the byte order mark of UTF-8.
var bom = []byte("\ufeff")

// sniffed is how much of a file is inspected to decide whether it is text; git inspects as much.
const sniffed = 8000

// pageMemory is how much memory [readPage] takes, in bytes: for the lines of the page, and for the current line.
const pageMemory = 2 * MaxPage

// isBinary reports whether the beginning of a file is not text.
func isBinary(data []byte) bool {
	return bytes.IndexByte(data[:min(len(data), sniffed)], 0) >= 0
}

// wide are the byte order marks of the encodings whose text has NUL bytes, the
// longer mark first.
var wide = []struct{ mark, encoding string }{
	{"\xff\xfe\x00\x00", "UTF-32"},
	{"\x00\x00\xfe\xff", "UTF-32"},
	{"\xff\xfe", "UTF-16"},
	{"\xfe\xff", "UTF-16"},
}

// notText returns why the beginning of a file is not text: an error that is
// ErrBinary, or nil.
func notText(data []byte) error {
	if !isBinary(data) {
		return nil
	}
	for _, w := range wide {
		if bytes.HasPrefix(data, []byte(w.mark)) {
			return &EncodingError{Encoding: w.encoding}
		}
	}
	return ErrBinary
}

// versionOf returns the Version of a content.
func versionOf(data []byte) Version {
	sum := sha256.Sum256(data)
	return version(sum[:])
}

// versionOfReader returns the Version of the content that it reads from r.
func versionOfReader(r io.Reader) (Version, error) {
	chunk, _ := chunks.Get().(*[]byte) // nothing else is in the pool
	defer chunks.Put(chunk)
	h := sha256.New()
	if _, err := io.CopyBuffer(h, r, *chunk); err != nil {
		return "", err
	}
	return version(h.Sum(nil)), nil
}

func version(sum []byte) Version {
	return Version(hex.EncodeToString(sum[:16]))
}

// readPage reads a file to its end and keeps the lines of the window. It fails with ErrBinary if the content is not
// text.
func readPage(r io.Reader, w Window) (Page, error) {
	p := pager{window: w.Clamp(), hash: sha256.New()}
	p.in = bufio.NewReaderSize(io.TeeReader(r, io.MultiWriter(p.hash, &p.format)), 64<<10)
	head, err := p.in.Peek(sniffed)
	if err != nil && !errors.Is(err, io.EOF) {
		return Page{}, err
	}
	if err := notText(head); err != nil {
		return Page{}, err
	}
	mark := bytes.HasPrefix(head, bom)
	if mark {
		_, _ = p.in.Discard(len(bom)) // peeked, so it is there
	}
	if err := p.run(); err != nil {
		return Page{}, err
	}
	p.page.Version = version(p.hash.Sum(nil))
	p.page.Format = p.format.result(mark)
	return p.page, nil
}

// A pager goes through the lines of a file.
type pager struct {
	in     *bufio.Reader
	hash   hash.Hash
	format formatCounter
	window Window
	page   Page
	bytes  int  // in page.Lines
	full   bool // a line did not fit: none after it is shown either
}

func (p *pager) run() error {
	for {
		line, found, err := p.line()
		if err != nil {
			return err
		}
		if !found {
			return nil
		}
		if p.shown() {
			p.addLine(line)
		}
		p.page.Total++
	}
}

// line reads one line and returns it without its end, as far as it fits a page. It returns an empty line if the window
// does not show it.
func (p *pager) line() (line []byte, found bool, err error) {
	for {
		part, err := p.in.ReadSlice('\n')
		found = found || len(part) > 0
		if room := MaxPage + len("\r\n") - len(line); p.shown() && room > 0 {
			line = append(line, part[:min(len(part), room)]...)
		}
		switch {
		case err == nil:
			return trimEnd(line), true, nil
		case errors.Is(err, io.EOF):
			return trimEnd(line), found, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, false, err
		}
	}
}

// shown reports whether the window shows the line that is read next.
func (p *pager) shown() bool {
	next := p.page.Total
	return !p.full && next >= p.window.Offset && next-p.window.Offset < p.window.Limit
}

// addLine adds a line to the page. The first line is always added, cut if necessary, so that reading progresses.
func (p *pager) addLine(line []byte) {
	first := len(p.page.Lines) == 0
	if !first && p.bytes+len(line) > MaxPage {
		p.full = true
		return
	}
	if first {
		p.page.Start = p.page.Total + 1
		line = line[:min(len(line), MaxPage)]
	}
	p.page.Lines = append(p.page.Lines, string(line))
	p.bytes += len(line)
}

// trimEnd takes the line end off a line.
func trimEnd(line []byte) []byte {
	if n := len(line); n > 0 && line[n-1] == '\n' {
		line = line[:n-1]
		line = bytes.TrimSuffix(line, []byte("\r"))
	}
	return line
}

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
