package httpapi

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxLine bounds one line, and an answer that is not streamed.
const maxLine = 4 << 20

// maxChecks is how many lines of an event are checked for the end of its data. The cost of each check is proportional
// to the length of the data.
const maxChecks = 64

// ErrEnd means that a stream ended, ErrDone that it ended with the mark [DONE].
var (
	ErrEnd  = errors.New("the stream ended")
	ErrDone = fmt.Errorf("%w with [DONE]", ErrEnd)
)

// EventError is the name of an event that holds an error.
const EventError = "error"

var (
	fieldData  = []byte("data:")
	fieldEvent = []byte("event:")
	fieldError = []byte("error:")
	doneMark   = []byte("[DONE]")
)

// An Event is one event of a stream. Its bytes are valid until the next is read.
type Event struct {
	Name []byte // empty if the server sent none
	Data []byte
}

// Events reads a stream of server-sent events, also from servers that leave out
// the empty line between two events or after the last one, or that write a field
// "error" or a bare JSON object. Comments and other fields are skipped.
// https://html.spec.whatwg.org/multipage/server-sent-events.html
type Events struct {
	lines  lineReader
	event  Event
	next   Event // began although no empty line ended this one
	checks int
	err    error // why nothing more comes
}

// Next returns the next event, or an error; ErrEnd or ErrDone: the stream has ended.
func (e *Events) Next() (Event, error) {
	e.event.Name, e.next.Name = append(e.event.Name[:0], e.next.Name...), e.next.Name[:0]
	e.event.Data, e.next.Data = append(e.event.Data[:0], e.next.Data...), e.next.Data[:0]
	e.checks = 0
	for e.err == nil {
		line, err := e.lines.next()
		e.err = err
		if line != nil && e.accept(bytes.TrimSpace(line)) {
			return e.event, nil
		}
	}
	if len(e.event.Data) > 0 && (errors.Is(e.err, ErrEnd) || json.Valid(e.event.Data)) {
		return e.event, nil // the error comes the next time
	}
	return Event{}, e.err
}

// accept takes a line and reports whether the event is complete.
func (e *Events) accept(line []byte) bool {
	switch {
	case len(line) == 0 && len(e.event.Data) == 0:
		e.event.Name = e.event.Name[:0]
	case len(line) == 0:
		return true
	case bytes.HasPrefix(line, fieldData):
		return e.add(nil, bytes.TrimSpace(line[len(fieldData):]))
	case bytes.HasPrefix(line, fieldEvent):
		return e.add(bytes.TrimSpace(line[len(fieldEvent):]), nil)
	case bytes.HasPrefix(line, fieldError):
		return e.add([]byte(EventError), bytes.TrimSpace(line[len(fieldError):]))
	case line[0] == '{':
		return e.add(nil, line)
	}
	return false
}

// add adds a name or data to the event. If its data are complete, they begin the
// next one.
func (e *Events) add(name, data []byte) bool {
	if bytes.Equal(data, doneMark) {
		e.err = ErrDone
		return false
	}
	complete := e.isComplete()
	event := &e.event
	if complete {
		event = &e.next
	}
	if name != nil {
		event.Name = append(event.Name[:0], name...)
	}
	if len(event.Data) > 0 && len(data) > 0 {
		event.Data = append(event.Data, '\n')
	}
	event.Data = append(event.Data, data...)
	return complete
}

func (e *Events) isComplete() bool {
	if len(e.event.Data) == 0 || e.checks == maxChecks {
		return false
	}
	e.checks++
	return json.Valid(e.event.Data)
}

// A lineReader reads lines of bounded length.
type lineReader struct {
	in      *bufio.Reader
	long    []byte // a line beyond the reader's buffer
	tooLong error
}

// next returns the next line, which is valid until the following one is read. At the end it returns the rest with
// ErrEnd. If the stream breaks, an incomplete line is dropped.
func (l *lineReader) next() ([]byte, error) {
	l.long = l.long[:0]
	for {
		part, err := l.in.ReadSlice('\n')
		if err == nil && len(l.long) == 0 {
			return part, nil
		}
		if len(l.long)+len(part) > maxLine {
			return nil, l.tooLong
		}
		l.long = append(l.long, part...)
		switch {
		case err == nil:
			return l.long, nil
		case errors.Is(err, io.EOF):
			return l.long, ErrEnd
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}
