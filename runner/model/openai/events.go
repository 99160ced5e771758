package openai

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/deckhand-dev/deckhand/runner/model/httpapi"
)

// events reads whatever servers send as a stream of chunks. Comments, blank
// lines and other fields are passed over, however many there are; the field
// "error", an event of that name and a bare object are chunks; a last line
// without a newline is a line.
type events struct {
	in      *httpapi.Lines
	failing bool // inside an event named error
	done    bool // [DONE] came
}

var (
	doneMark   = []byte("[DONE]")
	fieldData  = []byte("data:")
	fieldError = []byte("error:")
	fieldEvent = []byte("event:")
)

// next is the next chunk, valid until the one after it is asked for, or why
// there is none: io.EOF at the end.
func (e *events) next() ([]byte, error) {
	for !e.done {
		line, err := e.in.Next()
		if chunk := e.accept(bytes.TrimSpace(line)); len(chunk) > 0 {
			return chunk, nil // an error comes again
		}
		if err != nil {
			return nil, err
		}
	}
	return nil, io.EOF
}

// accept is the chunk that a line holds, if it does.
func (e *events) accept(line []byte) []byte {
	switch {
	case len(line) == 0:
		e.failing = false
	case bytes.HasPrefix(line, fieldData):
		return e.data(bytes.TrimSpace(line[len(fieldData):]))
	case bytes.HasPrefix(line, fieldError):
		return failed(bytes.TrimSpace(line[len(fieldError):]))
	case bytes.HasPrefix(line, fieldEvent):
		e.failing = string(bytes.TrimSpace(line[len(fieldEvent):])) == "error"
	case line[0] == '{':
		return e.data(line)
	}
	return nil
}

func (e *events) data(payload []byte) []byte {
	switch {
	case len(payload) == 0:
		return nil
	case bytes.Equal(payload, doneMark):
		e.done = true
		return nil
	case e.failing:
		return failed(payload)
	}
	return payload
}

// failed is an error as a chunk.
func failed(payload []byte) []byte {
	if !valid(payload) {
		payload, _ = json.Marshal(string(payload)) // a string: cannot fail
	}
	return append(append([]byte(`{"error":`), payload...), '}')
}
