package text

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/internal/backend/memlimit"
)

// A Search gathers the lines that a query asks for, one file after the other.
type Search struct {
	// Found is what was found so far; whoever searches says whether it is all.
	Found   backend.Matches
	query   backend.Query
	pattern *Pattern
}

// Room says whether a search goes on.
type Room string

// Whether a search goes on.
const (
	Left Room = "Left" // there is room for more matches
	Full Room = "Full" // there was one match too many
)

// NewSearch compiles the pattern of a query and clamps its limit.
func NewSearch(q backend.Query) (Search, error) {
	p, err := CompileQuery(q)
	if err != nil {
		return Search{}, err
	}
	if q.Limit < 1 || q.Limit > backend.MaxMatches {
		q.Limit = backend.MaxMatches
	}
	return Search{query: q, pattern: p}, nil
}

// Skips reports whether Query.Skip leaves out a file. A backend must call it for
// each file before it reads or checks the content, so that neither the result nor
// the calls of Query.Skip depend on the content of a file that is left out.
func (s *Search) Skips(name string) bool {
	return s.query.Skip != nil && s.query.Skip(name)
}

// chunkSize is how much of a file a search holds, unless a line is longer.
const chunkSize = 128 << 10

var chunks = sync.Pool{New: func() any {
	chunk := make([]byte, chunkSize)
	return &chunk
}}

// In adds the matches among the first size bytes of the file of that name, which
// r reads. It fails with ErrBinary where the content is not text, and adds
// nothing where it fails.
//
// It holds one chunk of the file. Where a line is longer than a chunk it holds
// the rest of the file, within [memlimit.Contents].
func (s *Search) In(ctx context.Context, name string, r io.Reader, size int64) (Room, error) {
	chunk, _ := chunks.Get().(*[]byte) // nothing else is in the pool
	defer chunks.Put(chunk)
	f := fileSearch{search: s, name: name, line: 1, first: -1}
	before := len(s.Found.Items)
	room, err := f.run(ctx, &source{from: io.LimitReader(r, size), left: size}, *chunk)
	if err != nil {
		s.Found.Items = s.Found.Items[:before]
	}
	return room, err
}

// InBytes is In for a file that is in memory.
func (s *Search) InBytes(name string, data []byte) (Room, error) {
	if Binary(data) {
		return Left, backend.ErrBinary
	}
	f := fileSearch{search: s, name: name, line: 1, first: -1}
	if !f.in(bytes.TrimPrefix(data, bom)) {
		return Full, nil
	}
	return Left, nil
}

// A fileSearch adds the matches of one file.
type fileSearch struct {
	search *Search
	name   string
	line   int // number of the line that comes next
	first  int // with Query.ByFile: the index of the file's match; -1: none yet
}

// run searches the chunks of a file, each of which ends with a line.
func (f *fileSearch) run(ctx context.Context, src *source, chunk []byte) (Room, error) {
	n, err := src.fill(chunk)
	data := chunk[:n]
	if err == nil && Binary(data) {
		return Left, backend.ErrBinary
	}
	data = bytes.TrimPrefix(data, bom)
	for err == nil && !src.ended {
		end := bytes.LastIndexByte(data, '\n') + 1
		if end == 0 {
			return f.hold(ctx, src, data)
		}
		if !f.in(data[:end]) {
			return Full, nil
		}
		rest := copy(chunk, data[end:])
		n, err = src.fill(chunk[rest:])
		data = chunk[:rest+n]
	}
	if err != nil || f.in(data) {
		return Left, err
	}
	return Full, nil
}

// hold searches the rest of a file in one piece: what was read of it, and what
// was not.
func (f *fileSearch) hold(ctx context.Context, src *source, read []byte) (Room, error) {
	size := int64(len(read)) + src.left
	release, err := memlimit.Contents.Acquire(ctx, size)
	if err != nil {
		return Left, err
	}
	defer release()
	data := make([]byte, size)
	rest := copy(data, read)
	n, err := src.fill(data[rest:])
	if err != nil || f.in(data[:rest+n]) {
		return Left, err
	}
	return Full, nil
}

// in adds the matches of some whole lines, and returns false if there was one
// too many.
func (f *fileSearch) in(lines []byte) bool {
	var room bool
	f.line, room = f.search.pattern.find(lines, f.line, f.add)
	return room
}

// add adds a line that matches, if there is room for it.
func (f *fileSearch) add(line int, content []byte) bool {
	found := &f.search.Found
	if f.first >= 0 {
		found.Items[f.first].Count++
		return true
	}
	if len(found.Items) == f.search.query.Limit {
		return false
	}
	m := backend.Match{Path: f.name, Line: line, Text: f.search.pattern.Excerpt(content)}
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
