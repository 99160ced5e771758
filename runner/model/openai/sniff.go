package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/httpapi"
)

// A source gives the chunks of an answer, and then io.EOF or why it broke off.
type source interface {
	next() ([]byte, error)
}

// source is what the answer is read from.
func (x *exchange) source() (source, error) {
	if x.answer.IsDocument {
		return x.wholeDocument()
	}
	x.events = &events{in: x.answer.Lines()}
	return x.events, nil
}

// A document is an answer that was not streamed although we asked for it: one
// chunk.
type document struct{ chunk []byte }

func (d *document) next() ([]byte, error) {
	chunk := d.chunk
	if d.chunk = nil; chunk == nil {
		return nil, io.EOF
	}
	return chunk, nil
}

// wholeDocument reads a document, or the error that it holds.
func (x *exchange) wholeDocument() (source, error) {
	data, err := x.answer.Document()
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	var answer struct {
		Choices json.RawMessage `json:"choices"`
		Error   json.RawMessage `json:"error"`
	}
	err = decoder.Decode(&answer)
	rest := bytes.TrimSpace(data[decoder.InputOffset():])
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, &model.IncompleteError{Cause: err}
	case err == nil && httpapi.IsError(answer.Error):
		return nil, x.BodyError(answer.Error)
	case err != nil || answer.Choices == nil || len(rest) > 0:
		return nil, x.answer.Unexpected(data)
	}
	x.document = true
	return &document{data}, nil
}
