package httpapi

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/runner/model"
)

// endTimeout is the idle time allowed once the answer said that it finished:
// only its usage and the end mark are missing then.
const endTimeout = 5 * time.Second

// maxExcerpt is how much of an answer that is not a model's is quoted.
const maxExcerpt = 4 << 10

// An Answer is what came back, and looks like a model's.
type Answer struct {
	// IsDocument tells a JSON document from a stream of events.
	IsDocument bool

	call *Call
	in   *bufio.Reader
	body *idleTimeoutBody
}

// Close hangs up.
func (a *Answer) Close() error { return a.body.Close() }

// ExpectEnd is called when the answer said that it finished: what is missing is
// not waited for as long.
func (a *Answer) ExpectEnd() { a.body.timer.idle = min(a.call.client.IdleTimeout, endTimeout) }

// Lines are the lines of a stream of events.
func (a *Answer) Lines() *Lines {
	return &Lines{in: a.in, tooLong: a.call.final("one line of it is longer than 4 MiB")}
}

// Document is the whole of a JSON document.
func (a *Answer) Document() ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(a.in, maxLine+1))
	switch {
	case err != nil:
		return nil, a.call.Interrupted(err)
	case len(data) > maxLine:
		return nil, a.call.final("it is longer than 4 MiB")
	}
	return data, nil
}

// Unexpected is the error for a document that is none of a model.
func (a *Answer) Unexpected(document []byte) error {
	return a.call.NotAModel(string(document[:min(len(document), maxExcerpt)]))
}

// detect returns the answer in a body, if it can be one. Servers mislabel their
// answers, so the first byte decides where the content type does not.
func (x *Call) detect(body *idleTimeoutBody) (*Answer, error) {
	in := bufio.NewReaderSize(body, 32<<10)
	first, err := firstByte(in)
	switch {
	case errors.Is(err, io.EOF):
		return nil, &model.IncompleteError{}
	case err != nil:
		return nil, x.Interrupted(err)
	case first == '{' || first == '[':
		return &Answer{IsDocument: true, call: x, in: in, body: body}, nil
	case first != '<' && (strings.HasPrefix(x.contentType, "text/event-stream") || isEvent(in)):
		return &Answer{call: x, in: in, body: body}, nil
	}
	excerpt, _ := in.Peek(maxExcerpt) // as much as there is
	return nil, x.NotAModel(string(excerpt))
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
