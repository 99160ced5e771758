package anthropic

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/deckhand-dev/deckhand/runner/model/httpapi"
)

// events are the events in a stream, however servers write them: comments and
// other fields are dropped, data may be on several lines, the empty line between
// two events may be missing, and so may the one at the end.
type events struct {
	in    *httpapi.Lines
	name  string
	data  []byte
	lines int    // that the data came in
	next  []byte // data of the event after this one, which no empty line announced
	err   error  // why nothing more comes
}

// maxLines is in how many lines data are looked at for their end: each look
// costs as much as they are long.
const maxLines = 64

var (
	fieldData  = []byte("data:")
	fieldEvent = []byte("event:")
	fieldError = []byte("error:")
)

// read is the next event: its name, which may be missing, and its data, which
// are valid until the one after it is read.
func (e *events) read() (name string, data []byte, err error) {
	e.name, e.data, e.lines = "", append(e.data[:0], e.next...), 0
	e.next = nil
	for e.err == nil {
		line, err := e.in.Next()
		if err != nil && !errors.Is(err, io.EOF) {
			e.err = err
			return "", nil, err
		}
		if errors.Is(err, io.EOF) {
			e.err = httpapi.ErrEnd
		}
		if e.accept(bytes.TrimSpace(line)) {
			return e.name, e.data, nil
		}
	}
	if len(e.data) > 0 {
		return e.name, e.data, nil
	}
	return "", nil, e.err
}

// accept takes a line and reports whether it ends an event.
func (e *events) accept(line []byte) bool {
	switch {
	case len(line) == 0:
		return len(e.data) > 0
	case bytes.HasPrefix(line, fieldData):
		return e.add(bytes.TrimSpace(line[len(fieldData):]))
	case bytes.HasPrefix(line, fieldEvent):
		e.name = nameOf(bytes.TrimSpace(line[len(fieldEvent):]))
	case bytes.HasPrefix(line, fieldError):
		e.name = typeError
		return e.add(bytes.TrimSpace(line[len(fieldError):]))
	case line[0] == '{':
		return e.add(line)
	}
	return false
}

// add takes data. Where they are whole already, more are those of the next
// event.
func (e *events) add(data []byte) bool {
	if e.lines++; len(e.data) > 0 && e.lines <= maxLines && json.Valid(e.data) {
		e.next = append([]byte(nil), data...)
		return true
	}
	if len(e.data) > 0 {
		e.data = append(e.data, '\n')
	}
	e.data = append(e.data, data...)
	return false
}

// nameOf is the name of an event, without a copy for those that come most.
func nameOf(name []byte) string {
	switch string(name) {
	case typeDelta:
		return typeDelta
	case typeError:
		return typeError
	}
	return string(name)
}
