package openai

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/model"
)

// sniffed is how much of an answer that is not a model's is quoted.
const sniffed = 4 << 10

// stream is the answer as a stream of events. Servers mislabel their answers,
// so the first byte decides where the content type does not.
func (x *exchange) stream(body io.Reader) (io.Reader, error) {
	in := bufio.NewReaderSize(body, 32<<10)
	first, err := firstByte(in)
	switch {
	case errors.Is(err, io.EOF):
		return nil, &model.IncompleteError{}
	case err != nil:
		return nil, x.interrupted(err)
	case first == '{' || first == '[':
		return x.wholeDocument(in)
	case first != '<' && (strings.HasPrefix(x.contentType, "text/event-stream") || isEvent(in)):
		x.events = &events{in: in, tooLong: x.notAModel("one line of it is longer than 4 MiB")}
		return x.events, nil
	}
	excerpt, _ := in.Peek(sniffed) // as much as there is
	return nil, x.notAModel(string(excerpt))
}

// firstByte is the first byte of a text, which stays unread.
func firstByte(in *bufio.Reader) (byte, error) {
	for {
		b, err := in.ReadByte()
		switch {
		case err != nil:
			return 0, err
		case bytes.IndexByte([]byte(" \t\r\n\ufeff"), b) < 0: // space, or a byte order mark
			return b, in.UnreadByte()
		}
	}
}

// isEvent reports whether a field of an event follows.
func isEvent(in *bufio.Reader) bool {
	start, _ := in.Peek(len("event:")) // less at the end
	for _, field := range []string{":", "data:", "event:", "id:", "retry:", "error:"} {
		if bytes.HasPrefix(start, []byte(field)) {
			return true
		}
	}
	return false
}

// wholeDocument is an answer that was not streamed although we asked for it, as
// a stream of one chunk; or the error that it holds.
func (x *exchange) wholeDocument(in io.Reader) (io.Reader, error) {
	data, err := io.ReadAll(io.LimitReader(in, maxLine+1))
	switch {
	case err != nil:
		return nil, x.interrupted(err)
	case len(data) > maxLine:
		return nil, x.notAModel("it is longer than 4 MiB")
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
	case err == nil && isError(answer.Error):
		return nil, x.told(answer.Error)
	case err != nil || answer.Choices == nil || len(rest) > 0:
		return nil, x.notAModel(string(data[:min(len(data), sniffed)]))
	}
	x.document = true
	var chunk bytes.Buffer
	chunk.WriteString("data: ")
	_ = json.Compact(&chunk, data) // decoded above: cannot fail
	chunk.WriteString("\n\ndata: [DONE]\n")
	return &chunk, nil
}

// interrupted is the error for an answer that broke off before it was one.
func (x *exchange) interrupted(cause error) error {
	if err := x.broken(cause); err != nil {
		return err
	}
	return &model.IncompleteError{Cause: x.clean(cause)}
}
