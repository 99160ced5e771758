package httpapi

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	jsonv1 "github.com/go-json-experiment/json/v1"

	"github.com/deckhand-dev/deckhand/runner/model"
)

// endTimeout is the idle timeout after the last finish reason: only the usage and the end of
// the stream are missing then.
const endTimeout = 5 * time.Second

// maxExcerpt bounds the quotation of a response that is not an answer of a model, in bytes.
const maxExcerpt = 4 << 10

// An Answer is a response that may have an answer of a model.
type Answer struct {
	// IsDocument reports that the body is a JSON document and not a stream of events.
	IsDocument bool
	// Response is the HTTP response. Relay reads its body.
	Response *http.Response

	call   *Call
	in     *bufio.Reader
	body   *idleTimeoutBody
	events interface{ Next() (Event, error) }
	begun  bool // an event came, or the first byte of a document
	atEnd  bool // only the end of the stream is missing
}

// Expect shortens the idle timeout while only the end of the stream is missing.
func (a *Answer) Expect(e *Ending) {
	if a.atEnd != e.Last() {
		a.atEnd = e.Last()
		a.setIdleTimeout()
	}
}

// begin changes the idle timeout when the answer begins.
func (a *Answer) begin() {
	if !a.begun {
		a.begun = true
		a.setIdleTimeout()
	}
}

func (a *Answer) setIdleTimeout() {
	limit := &model.TimeoutError{Field: model.TimeoutBetweenBytes, After: a.call.client.Timeouts.BetweenBytes}
	if a.atEnd {
		limit = &model.TimeoutError{After: min(limit.After, endTimeout)}
	}
	a.body.timer.limit.Store(limit)
}

// A Decoder converts the events of an endpoint to deltas. An error ends the answer; ErrEnd or ErrDone: it is complete.
type Decoder interface {
	// Event takes one event of a stream.
	Event(Event) error
	// Document takes an answer that was not streamed although we asked for it.
	Document([]byte) error
	// Take returns the deltas since the last Take.
	Take() []model.Delta
}

// Relay decodes the answer and yields its deltas until it ends. It returns false if yield
// does, and the error that ended the answer.
func (a *Answer) Relay(d Decoder, yield func(model.Delta, error) bool) (wanted bool, cause error) {
	next := a.nextDocument
	if !a.IsDocument {
		next = a.nextEvent
	}
	for cause == nil {
		cause = next(d)
		for _, delta := range d.Take() {
			if !yield(delta, nil) {
				return false, cause
			}
		}
	}
	return true, cause
}

func (a *Answer) nextEvent(d Decoder) error {
	event, err := a.events.Next()
	if err != nil {
		return err
	}
	a.begin()
	return d.Event(event)
}

func (a *Answer) nextDocument(d Decoder) error {
	a.begin()
	document, err := a.readDocument()
	if err != nil {
		return err
	}
	return cmp.Or(d.Document(document), ErrDone)
}

// readDocument reads a JSON document that is not an error.
func (a *Answer) readDocument() ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(a.in, maxLine+1))
	switch {
	case err != nil:
		return nil, a.call.Interrupted(err)
	case len(data) > maxLine:
		return nil, a.call.final("it is longer than 4 MiB")
	}
	decoder := jsonv1.NewDecoder(bytes.NewReader(data))
	var failed struct {
		Error json.RawMessage `json:"error"`
	}
	err = IgnoreTypeErrors(decoder.Decode(&failed))
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, &model.IncompleteError{Cause: err}
	case err == nil && IsError(failed.Error):
		return nil, a.call.BodyError(data[:decoder.InputOffset()])
	case err != nil || len(bytes.TrimSpace(data[decoder.InputOffset():])) > 0:
		return nil, a.Unexpected(data)
	}
	return data, nil
}

// Unexpected returns the error for a document that is not a model's answer.
func (a *Answer) Unexpected(document []byte) error {
	return a.call.NotAModel(string(document[:min(len(document), maxExcerpt)]))
}

// detect returns the Answer of a body. Servers mislabel their answers, so the first byte
// decides before the content type.
func (c *Call) detect(body *idleTimeoutBody) (*Answer, error) {
	in := bufio.NewReaderSize(body, 32<<10)
	first, err := firstByte(in)
	answer := &Answer{IsDocument: first == '{' || first == '[', call: c, in: in, body: body}
	switch {
	case errors.Is(err, io.EOF):
		return nil, &model.IncompleteError{}
	case err != nil:
		return nil, c.Interrupted(err)
	case answer.IsDocument:
		return answer, nil
	case first != '<' && (strings.HasPrefix(c.contentType, "text/event-stream") || isEvent(in)):
		answer.events = &Events{lines: lineReader{in: in, tooLong: c.final("one line of it is longer than 4 MiB")}}
		return answer, nil
	case first == 0 && strings.HasPrefix(c.contentType, ContentFrames):
		answer.events = &frames{in: in, tooLong: c.final("one frame of it is longer than 4 MiB")}
		return answer, nil
	}
	excerpt, _ := in.Peek(maxExcerpt) // as much as there is
	return nil, c.NotAModel(string(excerpt))
}

// firstByte returns the first byte that is not space, and leaves it unread.
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
		if bytes.HasPrefix(start, []byte(field)) || strings.HasPrefix(field, string(start)) { // cut in the field
			return true
		}
	}
	return false
}

// Merge applies a JSON Merge Patch (RFC 7396): objects are merged, a null
// removes, anything else replaces. The empty patch does nothing. Values of the body
// may be json.RawMessage.
func Merge(body map[string]any, patch string) error {
	if patch == "" {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader([]byte(patch)))
	decoder.UseNumber() // numbers reach the provider as they were written
	var values map[string]any
	if err := decoder.Decode(&values); err != nil {
		return fmt.Errorf("decoding a JSON object: %w", err)
	}
	if decoder.More() {
		return errors.New("there is something after the JSON object")
	}
	apply(body, values)
	return nil
}

func apply(body, patch map[string]any) {
	for key, value := range patch {
		inner, isObject := value.(map[string]any)
		target, hasObject := object(body[key])
		switch {
		case value == nil:
			delete(body, key)
		case isObject && hasObject:
			apply(target, inner)
			body[key] = target
		case isObject:
			fresh := map[string]any{}
			apply(fresh, inner)
			body[key] = fresh
		default:
			body[key] = value
		}
	}
}

// object returns a value as an object, if it is one.
func object(value any) (map[string]any, bool) {
	raw, isRaw := value.(json.RawMessage)
	if !isRaw {
		o, ok := value.(map[string]any)
		return o, ok
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var o map[string]any
	err := decoder.Decode(&o)
	return o, err == nil && o != nil
}

// maxCacheKey is the maximum length of a cache key that OpenAI accepts.
const maxCacheKey = 64

// CacheKey returns the key of a session in a form that OpenAI accepts.
func CacheKey(session string) string {
	if len(session) <= maxCacheKey {
		return session
	}
	sum := sha256.Sum256([]byte(session))
	return hex.EncodeToString(sum[:])
}

// Encode writes JSON without the escapes that only HTML needs: they would cost
// tokens of bytes in every request that holds code.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, fmt.Errorf("encoding the request: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
