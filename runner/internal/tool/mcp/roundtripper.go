package mcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/deckhand-dev/deckhand/internal/shared/quote"
)

const (
	headerSession = "Mcp-Session-Id"
	headerVersion = "Mcp-Protocol-Version"
)

// A roundTripper is the HTTP transport of a session. It bounds responses, ends with the session, and separates
// responses of a proxy in front of a server from those of the protocol.
type roundTripper struct {
	base    http.RoundTripper
	life    context.Context //nolint:containedctx // it is that of the session, which requests do not have
	version func() string
	refused atomic.Bool // a message that begins a session was refused as servers of the old transport do
	// elsewhere describes a response to the first message of a session that did not come from an MCP server; nil: there
	// was none.
	elsewhere atomic.Pointer[string]
}

// RoundTrip implements [http.RoundTripper].
func (r *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	stop := context.AfterFunc(r.life, cancel)
	release := sync.OnceFunc(func() { stop(); cancel() })
	out := req.Clone(ctx)
	if v := r.version(); v != "" && out.Header.Get(headerVersion) == "" {
		out.Header.Set(headerVersion, v)
	}
	if v := traceOf(ctx); v != "" {
		out.Header.Set(traceparent, v)
	}
	resp, err := r.base.RoundTrip(out)
	if err != nil {
		release()
		return nil, err
	}
	limit := int64(maxMessage)
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if media == "text/event-stream" {
		limit = maxStream
	}
	resp.Body = &limitedBody{ReadCloser: resp.Body, left: limit, release: release}
	if req.Method == http.MethodPost && req.Header.Get(headerSession) == "" {
		r.noteBeginning(resp.StatusCode, media)
	}
	if resp.StatusCode < http.StatusBadRequest {
		return resp, nil
	}
	return refusal(req, resp)
}

// noteBeginning records whether the response to the first message of a session comes from an MCP server.
func (r *roundTripper) noteBeginning(status int, media string) {
	if looksOld(status) {
		r.refused.Store(true)
	}
	isPage := status < http.StatusMultipleChoices && media == "text/html"
	if !isPage && status != http.StatusNotFound && status != http.StatusMethodNotAllowed {
		return
	}
	answer := fmt.Sprintf("it answered %d %s", status, http.StatusText(status))
	if isPage {
		answer = "it answered with a web page"
	}
	r.elsewhere.Store(&answer)
}

// refusal returns a response with an error status: as a response that the library can read, or as an error.
func refusal(req *http.Request, resp *http.Response) (*http.Response, error) {
	text, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	hasSession := req.Header.Get(headerSession) != ""
	asked, code := askedBy(req), resp.StatusCode
	answer := asked.errorIn(text)
	switch {
	case answer != nil && isAnswer(code, hasSession, answer.Code):
		_ = resp.Body.Close()
		return asked.answeredBy(resp, answer), nil
	case code == http.StatusBadRequest && hasSession && isSessionUnknown(text, answer):
		code = http.StatusNotFound
	case !isHTTPError(code, hasSession, asked):
		resp.Body = &prefixedBody{ReadCloser: resp.Body, prefix: text}
		return resp, nil
	}
	_ = resp.Body.Close()
	return nil, &statusError{code: code, text: quote.Line(http.StatusText(resp.StatusCode)+" "+string(text), maxQuote)}
}

// isHTTPError reports whether a response without an error of the protocol does not belong to the protocol. Below status
// 500 the request had no effect.
func isHTTPError(status int, hasSession bool, asked question) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
		return true
	case http.StatusNotFound: // the session ended, whatever the body says
		return hasSession || asked.isCall()
	default:
		return status >= http.StatusInternalServerError || asked.isCall()
	}
}

// isAnswer reports whether an error of the protocol counts rather than the HTTP status of its response. It does not if
// credentials were refused, which the owner of the agent must correct, or with 404, with which a server reports that a
// session ended, unless the code means that something else was not found.
func isAnswer(status int, hasSession bool, code int64) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return false
	case http.StatusNotFound:
		return !hasSession || code == jsonrpc.CodeMethodNotFound || code == jsonrpc.CodeInvalidParams
	}
	return true
}

// isSessionUnknown reports whether the body of a 400 means that the server does not know the session, for which the
// specification requires 404. The body is an error of the protocol that answers no request. Servers based on the
// examples of the TypeScript SDK do this.
// https://github.com/modelcontextprotocol/typescript-sdk/tree/v1.x/src/examples/server
func isSessionUnknown(body []byte, answer *jsonrpc.Error) bool {
	return bytes.Contains(body, []byte("No valid session ID provided")) ||
		answer == nil && readObject(readObject(body)["error"]) != nil
}

// A prefixedBody is a body whose first bytes were already read.
type prefixedBody struct {
	io.ReadCloser
	prefix []byte
}

// Read implements [io.Reader].
func (b *prefixedBody) Read(p []byte) (int, error) {
	if len(b.prefix) == 0 {
		return b.ReadCloser.Read(p)
	}
	n := copy(p, b.prefix)
	b.prefix = b.prefix[n:]
	return n, nil
}

// looksOld reports whether a server that refuses a POST with this status may speak the transport before Streamable
// HTTP. The specification names these three:
// https://modelcontextprotocol.io/specification/2025-06-18/basic/transports#backwards-compatibility
func looksOld(status int) bool {
	return status == http.StatusBadRequest || status == http.StatusNotFound || status == http.StatusMethodNotAllowed
}

// A limitedBody is the body of a response, up to a limit.
type limitedBody struct {
	io.ReadCloser
	left    int64
	release func()
}

// Read implements [io.Reader].
func (b *limitedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("reading an answer: %w", errLarge)
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// Close implements [io.Closer].
func (b *limitedBody) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}

// Bounds of the standalone stream.
const (
	maxStandalone = 16 << 20 // bytes in a session
	// standaloneOpenTimeout is how long the session waits until the stream is open.
	standaloneOpenTimeout = 2 * time.Second

	firstReconnect = 5 * time.Second
	maxReconnect   = 5 * time.Minute
	maxEvent       = 1 << 20 // bytes of one event
)

// listenStandalone reads the standalone stream of a server while the session lasts. Some servers send progress there,
// or requests, and wait until these are declined. It calls opened when the stream is open, or when it is known that the
// server has none.
// https://modelcontextprotocol.io/specification/2025-06-18/basic/transports#listening-for-messages-from-the-server
//
// The library (go-sdk v1.8.0) reads this stream only on its own type of connection, which it recognizes by an
// unexported method (mcp/client.go:400). Here the session uses the guard as its connection, because the library queues
// requests without a bound (internal/jsonrpc2/conn.go:625).
func (s *session) listenStandalone(ctx context.Context, to string, opened func()) {
	defer opened()
	heard := 0
	for gap := firstReconnect; heard < maxStandalone && !s.guard.over(); gap = min(2*gap, maxReconnect) {
		n, err := s.readStandalone(ctx, to, maxStandalone-heard, opened)
		heard += n
		if err != nil || !sleep(ctx, gap) {
			return
		}
	}
}

var errNoStandalone = errors.New("there is no such stream")

// readStandalone reads one stream of events to its end. An error means that no other stream will be opened.
func (s *session) readStandalone(ctx context.Context, to string, limit int, opened func()) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, to, nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Accept", "text/event-stream")
	if id := s.guard.SessionID(); id != "" {
		req.Header.Set(headerSession, id)
	}
	resp, err := s.http.Do(req)
	opened()
	if err != nil {
		var status *statusError
		if errors.As(err, &status) && status.code < http.StatusInternalServerError {
			return 0, errNoStandalone
		}
		return 0, nil // it may be there later
	}
	defer resp.Body.Close()
	if media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); resp.StatusCode != http.StatusOK || media != "text/event-stream" {
		return 0, errNoStandalone
	}
	return s.readEvents(ctx, resp.Body, limit)
}

// readEvents reads events until the stream ends. An event that is too large ends it.
func (s *session) readEvents(ctx context.Context, from io.Reader, limit int) (int, error) {
	var lines splitter
	var data []byte
	chunk, read := make([]byte, 16<<10), 0
	for read < limit {
		n, err := from.Read(chunk)
		read += n
		wrong := lines.add(chunk[:n], func(text []byte) error {
			switch rest, ok := bytes.CutPrefix(text, []byte("data:")); {
			case ok && len(data)+len(rest) > maxEvent:
				return errLarge
			case ok:
				data = append(data, bytes.TrimSpace(rest)...)
			case len(text) == 0 && len(data) > 0:
				s.handleStandalone(ctx, data)
				data = nil
			}
			return nil
		})
		if wrong != nil || len(lines.rest) > maxEvent {
			return read, errLarge
		}
		if err != nil {
			return read, nil //nolint:nilerr // streams end
		}
	}
	return read, nil
}

// handleStandalone handles one message; responses do not belong there.
func (s *session) handleStandalone(ctx context.Context, text []byte) {
	m, err := message(text)
	if err != nil {
		return
	}
	if r, ok := m.(*jsonrpc.Request); ok {
		s.guard.handleRequest(ctx, r)
	}
}

// maxEndpoint is how much of a stream is read to detect the old transport, in bytes.
const maxEndpoint = 4 << 10

// speaksSSE reports whether a server speaks the HTTP+SSE transport of 2024-11-05:
// it answers a GET with a stream whose first event is named endpoint.
func (s *session) speaksSSE(ctx context.Context, url string) bool {
	ctx, cancel := context.WithTimeout(ctx, discoveryTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := s.http.Do(req)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if resp.StatusCode != http.StatusOK || media != "text/event-stream" {
		return false
	}
	lines := bufio.NewScanner(io.LimitReader(resp.Body, maxEndpoint))
	for lines.Scan() {
		if name, isEvent := strings.CutPrefix(lines.Text(), "event:"); isEvent {
			return strings.TrimSpace(name) == "endpoint"
		}
	}
	return false
}

// A splitter splits the chunks of a stream into lines. A line is at most as long as a message may be.
type splitter struct{ rest []byte }

// maxRetained is how large a buffer a splitter keeps between lines.
const maxRetained = 64 << 10

// add calls line with each line that a chunk completes, until line fails. An error also means that a line is too long.
func (s *splitter) add(chunk []byte, line func([]byte) error) error {
	for {
		end := bytes.IndexByte(chunk, '\n')
		piece := chunk
		if end >= 0 {
			piece = chunk[:end]
		}
		if len(s.rest)+len(piece) > maxMessage {
			return errLarge
		}
		if end < 0 {
			s.rest = append(s.rest, piece...)
			return nil
		}
		if err := line(bytes.TrimSpace(s.take(piece))); err != nil {
			return err
		}
		chunk = chunk[end+1:]
	}
}

// take returns the complete line that ends with rest. It is valid until the next call of add.
func (s *splitter) take(rest []byte) []byte {
	if len(s.rest) == 0 {
		return rest
	}
	whole := append(s.rest, rest...)
	s.rest = whole[:0]
	if cap(whole) > maxRetained {
		s.rest = nil
	}
	return whole
}

// A ring keeps the end of a stream.
type ring struct{ tail []byte }

func (r *ring) add(chunk []byte) {
	if len(chunk) > maxErrorText {
		chunk = chunk[len(chunk)-maxErrorText:]
	}
	r.tail = append(r.tail, chunk...)
	if over := len(r.tail) - maxErrorText; over > 0 {
		r.tail = append(r.tail[:0], r.tail[over:]...)
	}
}
