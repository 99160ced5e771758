package backend

import (
	"bytes"
	"context"
	"errors"
	"io"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/deckhand-dev/deckhand/internal/shared/pattern"
	"github.com/deckhand-dev/deckhand/runner/internal/backend/memlimit"
)

// Grep finds lines in text files of at most MaxSearch bytes, in the order of Compare. It never follows a link to a
// directory, and skips directories named ".git" unless it starts inside one.
func (b *Backend) Grep(ctx context.Context, q Query) (Matches, error) {
	found, err := b.grep(ctx, q)
	if err != nil {
		return Matches{}, failed("grep", q.Dir, err)
	}
	return found, nil
}

func (b *Backend) grep(ctx context.Context, q Query) (Matches, error) {
	s, err := newLineSearch(q)
	if err != nil {
		return Matches{}, err
	}
	g, err := compileGlob(q.Glob)
	if err != nil {
		return Matches{}, err
	}
	dir, err := clean(ctx, q.Dir)
	if err != nil {
		return Matches{}, err
	}
	entries, err := b.start(ctx, g, dir)
	switch {
	case errors.Is(err, ErrNotDir):
		err = b.grepOne(ctx, s, dir)
	case err == nil:
		w := walk{backend: b, ctx: ctx, op: "grep", until: b.now().Add(GrepTimeout)}
		w.visit = func(e Info) error {
			// The target of a link inside the tree is found under its own name.
			if e.Link || !g.match(relative(dir, e.Path)) || s.skips(e.Path) || e.Size > MaxSearch {
				return nil
			}
			err := b.grepFile(ctx, s, e.Path)
			if errors.Is(err, ErrBinary) || errors.Is(err, ErrTooLarge) {
				return nil
			}
			return w.passOver(e.Path, err)
		}
		err = w.run(entries)
	}
	s.found.Truncated, err = truncated(err)
	return s.found, err
}

// grepOne searches a single file that was named. Anything that a search of a tree skips is an error here.
func (b *Backend) grepOne(ctx context.Context, s *lineSearch, name string) error {
	if s.skips(name) {
		return nil
	}
	return b.grepFile(ctx, s, name)
}

func (b *Backend) grepFile(ctx context.Context, s *lineSearch, name string) error {
	f, err := b.driver.Open(ctx, name)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := within(f.Size, MaxSearch); err != nil {
		return err
	}
	return s.file(ctx, name, bounded(ctx, f, MaxSearch), f.Size)
}

// A lineSearch gathers the lines that a query asks for, one file after the other.
type lineSearch struct {
	found   Matches
	query   Query
	pattern *linePattern
}

// newLineSearch compiles the pattern of a query and clamps its limit.
func newLineSearch(q Query) (*lineSearch, error) {
	p, err := compilePattern(q)
	if err != nil {
		return nil, err
	}
	if q.Limit < 1 || q.Limit > MaxMatches {
		q.Limit = MaxMatches
	}
	return &lineSearch{query: q, pattern: p}, nil
}

// skips reports whether Query.Skip leaves out a file. It is called before the file is opened, so that neither the
// result nor the calls of Query.Skip depend on the content of a skipped file.
func (s *lineSearch) skips(name string) bool {
	return s.query.Skip != nil && s.query.Skip(name)
}

// chunkSize is how much of a file a search holds, unless a line is longer.
const chunkSize = 128 << 10

var chunks = sync.Pool{New: func() any {
	chunk := make([]byte, chunkSize)
	return &chunk
}}

// file adds the matches in the first size bytes of a file, which r reads. It fails with errFull if there is one match
// too many, and with ErrBinary if the content is not text. After any error other than errFull it has added nothing. It
// holds one chunk of the file in memory. If a line is longer than a chunk, it holds the rest of the file, within
// [memlimit.Contents].
func (s *lineSearch) file(ctx context.Context, name string, r io.Reader, size int64) error {
	chunk, _ := chunks.Get().(*[]byte) // nothing else is in the pool
	defer chunks.Put(chunk)
	f := fileSearch{search: s, name: name, line: 1, first: -1}
	before := len(s.found.Items)
	err := f.run(ctx, &source{from: io.LimitReader(r, size), left: size}, *chunk)
	if err != nil && !errors.Is(err, errFull) {
		s.found.Items = s.found.Items[:before]
	}
	return err
}

// A fileSearch adds the matches of one file.
type fileSearch struct {
	search *lineSearch
	name   string
	line   int // number of the line that comes next
	first  int // with Query.ByFile: the index of the file's match; -1: none yet
}

// run searches the chunks of a file, each of which ends with a line.
func (f *fileSearch) run(ctx context.Context, src *source, chunk []byte) error {
	n, err := src.fill(chunk)
	data := chunk[:n]
	if err == nil && isBinary(data) {
		return ErrBinary
	}
	data = bytes.TrimPrefix(data, bom)
	for err == nil && !src.ended {
		end := bytes.LastIndexByte(data, '\n') + 1
		if end == 0 {
			return f.hold(ctx, src, data)
		}
		if err := f.in(data[:end]); err != nil {
			return err
		}
		rest := copy(chunk, data[end:])
		n, err = src.fill(chunk[rest:])
		data = chunk[:rest+n]
	}
	if err != nil {
		return err
	}
	return f.in(data)
}

// hold searches the rest of a file in one piece: the bytes that were already read, and the remaining ones.
func (f *fileSearch) hold(ctx context.Context, src *source, read []byte) error {
	size := int64(len(read)) + src.left
	release, err := memlimit.Contents.Acquire(ctx, size)
	if err != nil {
		return err
	}
	defer release()
	data := make([]byte, size)
	rest := copy(data, read)
	n, err := src.fill(data[rest:])
	if err != nil {
		return err
	}
	return f.in(data[:rest+n])
}

// in adds the matches of some whole lines.
func (f *fileSearch) in(lines []byte) error {
	var more bool
	if f.line, more = f.search.pattern.find(lines, f.line, f.add); !more {
		return errFull
	}
	return nil
}

// add adds a line that matches, if there is room for it.
func (f *fileSearch) add(line int, content []byte) bool {
	found := &f.search.found
	if f.first >= 0 {
		found.Items[f.first].Count++
		return true
	}
	if len(found.Items) == f.search.query.Limit {
		return false
	}
	m := Match{Path: f.name, Line: line, Text: f.search.pattern.excerpt(content)}
	if f.search.query.ByFile {
		m.Count, f.first = 1, len(found.Items)
	}
	found.Items = append(found.Items, m)
	return true
}

// A source is the content of a file that is read in chunks.
type source struct {
	from  io.Reader
	left  int64 // bytes that may come, at most
	ended bool
}

// fill reads until a buffer is full or the file ends.
func (s *source) fill(buffer []byte) (int, error) {
	n, err := io.ReadFull(s.from, buffer)
	s.left -= int64(n)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		s.ended, err = true, nil
	}
	return n, err
}

// A linePattern finds the lines of a query.
type linePattern struct {
	re      *regexp.Regexp
	literal []byte // all of the pattern, when it is plain text
}

// compilePattern compiles the pattern of a query.
func compilePattern(q Query) (*linePattern, error) {
	if len(q.Pattern) > MaxPattern {
		return nil, &PatternError{Pattern: q.Pattern[:80] + "…", Err: errTooLong}
	}
	expr := q.Pattern
	if q.Fixed {
		expr = regexp.QuoteMeta(expr)
	}
	if q.IgnoreCase {
		expr = "(?i)" + expr
	}
	re, err := pattern.Compile(expr)
	if err != nil {
		return nil, &PatternError{Pattern: q.Pattern, Err: err}
	}
	p := &linePattern{re: re}
	if prefix, complete := re.LiteralPrefix(); complete {
		p.literal = []byte(prefix)
	}
	return p, nil
}

// find yields the lines of data that match, until yield returns false. data has whole lines of a file, the first of
// which has the number line. It returns the number of the line after them, and false if yield did.
func (p *linePattern) find(data []byte, line int, yield func(line int, text []byte) bool) (next int, more bool) {
	for ; len(data) > 0; line++ {
		// Most files do not have a plain text at all: look once, not by lines.
		if len(p.literal) > 0 {
			i := bytes.Index(data, p.literal)
			if i < 0 {
				return line + bytes.Count(data, newline), true
			}
			start := bytes.LastIndexByte(data[:i], '\n') + 1
			line, data = line+bytes.Count(data[:start], newline), data[start:]
		}
		text, rest, _ := bytes.Cut(data, newline)
		text = bytes.TrimSuffix(text, []byte("\r"))
		if p.match(text) && !yield(line, text) {
			return line, false
		}
		data = rest
	}
	return line, true
}

var newline = []byte("\n")

func (p *linePattern) match(line []byte) bool {
	if p.literal != nil {
		return bytes.Contains(line, p.literal)
	}
	return p.re.Match(line)
}

// excerpt returns a matching line for a Match: valid text and, if the line is too long, the part around the match.
func (p *linePattern) excerpt(line []byte) string {
	if len(line) <= MaxMatchText {
		return strings.ToValidUTF8(string(line), string(utf8.RuneError))
	}
	const ellipsis = "…"
	start := 0
	if loc := p.re.FindIndex(line); loc != nil && loc[1] > MaxMatchText {
		start = max(0, loc[0]-MaxMatchText/4)
	}
	end := min(len(line), start+MaxMatchText-2*len(ellipsis))
	// A rune that is cut in two at either edge is dropped.
	text := strings.ToValidUTF8(string(line[start:end]), "")
	if start > 0 {
		text = ellipsis + text
	}
	if end < len(line) {
		text += ellipsis
	}
	return text
}
