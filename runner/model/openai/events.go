package openai

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// maxLine bounds one event, and an answer that is not streamed.
const maxLine = 4 << 20

// events reads what servers send and writes the one form that the client reads
// without loss: "data: " and a chunk, on one line each, then "data: [DONE]".
// Comments, blank lines and other fields are dropped, however many there are;
// the field "error", an event of that name and a bare object become chunks; a
// last line without a newline is a line.
type events struct {
	in   *bufio.Reader
	long []byte // a line beyond the reader's buffer
	out  []byte // written, not yet read
	buf  []byte // what out is a part of
	err  error  // why nothing more comes

	failing bool // inside an event named error
	done    bool // [DONE] came
	tooLong error
}

var (
	doneMark    = []byte("[DONE]")
	fieldData   = []byte("data:")
	fieldError  = []byte("error:")
	fieldEvent  = []byte("event:")
	errorPrefix = []byte(`{"error":`)
)

func (e *events) Read(p []byte) (int, error) {
	for len(e.out) == 0 {
		if e.err != nil {
			return 0, e.err
		}
		e.buf = e.buf[:0]
		e.accept(bytes.TrimSpace(e.line()))
		e.out = e.buf
	}
	n := copy(p, e.out)
	e.out = e.out[n:]
	return n, nil
}

// line is the next line. At the end of the stream that is what is left; when
// the stream breaks, a piece of a line is worth nothing.
func (e *events) line() []byte {
	e.long = e.long[:0]
	for {
		piece, err := e.in.ReadSlice('\n')
		switch {
		case err == nil && len(e.long) == 0:
			return piece
		case len(e.long)+len(piece) > maxLine:
			e.err = e.tooLong
			return nil
		}
		e.long = append(e.long, piece...)
		switch {
		case err == nil:
			return e.long
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		}
		e.err = err
		if errors.Is(err, io.EOF) {
			return e.long
		}
		return nil
	}
}

func (e *events) accept(line []byte) {
	switch {
	case len(line) == 0:
		e.failing = false
	case bytes.HasPrefix(line, fieldData):
		e.data(bytes.TrimSpace(line[len(fieldData):]))
	case bytes.HasPrefix(line, fieldError):
		e.fail(bytes.TrimSpace(line[len(fieldError):]))
	case bytes.HasPrefix(line, fieldEvent):
		e.failing = string(bytes.TrimSpace(line[len(fieldEvent):])) == "error"
	case line[0] == '{':
		e.data(line)
	}
}

func (e *events) data(payload []byte) {
	switch {
	case len(payload) == 0:
	case bytes.Equal(payload, doneMark):
		e.done = true
		e.err = io.EOF
		e.emit(payload)
	case e.failing:
		e.fail(payload)
	case bytes.HasPrefix(payload, errorPrefix):
		// The client would hold a chunk that begins so until the next line.
		e.emit([]byte("{ "), payload[1:])
	default:
		e.emit(payload)
	}
}

// fail makes a chunk of an error.
func (e *events) fail(payload []byte) {
	if !json.Valid(payload) {
		payload, _ = json.Marshal(string(payload)) // a string: cannot fail
	}
	e.emit([]byte(`{ "error":`), payload, []byte("}"))
}

func (e *events) emit(pieces ...[]byte) {
	e.buf = append(e.buf, "data: "...)
	for _, piece := range pieces {
		e.buf = append(e.buf, piece...)
	}
	e.buf = append(e.buf, '\n')
}
