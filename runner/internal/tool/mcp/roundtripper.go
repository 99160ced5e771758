package mcp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

const (
	headerSession = "Mcp-Session-Id"
	headerVersion = "Mcp-Protocol-Version"
)

// A roundTripper is the HTTP below a session. It bounds what comes back, ends with the
// session, and tells answers of a proxy in front of a server from answers of
// the protocol.
type roundTripper struct {
	base    http.RoundTripper
	life    context.Context //nolint:containedctx // it is that of the session, which requests do not have
	version func() string
	refused atomic.Bool // a message that begins a session was refused as servers of the old transport do
	// elsewhere is the answer of what is no MCP server to a message that begins a session; nil: there was none.
	elsewhere atomic.Pointer[string]
}

// RoundTrip implements [http.RoundTripper].
func (w *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	stop := context.AfterFunc(w.life, cancel)
	release := sync.OnceFunc(func() { stop(); cancel() })
	out := req.Clone(ctx)
	if v := w.version(); v != "" && out.Header.Get(headerVersion) == "" {
		out.Header.Set(headerVersion, v)
	}
	if v := traceOf(ctx); v != "" {
		out.Header.Set(traceparent, v)
	}
	resp, err := w.base.RoundTrip(out)
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
		w.noteBeginning(resp.StatusCode, media)
	}
	if resp.StatusCode < http.StatusBadRequest {
		return resp, nil
	}
	return refusal(req, resp)
}

// noteBeginning notes what the answer to a message that begins a session says of the server.
func (w *roundTripper) noteBeginning(status int, media string) {
	if looksOld(status) {
		w.refused.Store(true)
	}
	isPage := status < http.StatusMultipleChoices && media == "text/html"
	if !isPage && status != http.StatusNotFound && status != http.StatusMethodNotAllowed {
		return
	}
	answer := fmt.Sprintf("it answered %d %s", status, http.StatusText(status))
	if isPage {
		answer = "it answered with a web page"
	}
	w.elsewhere.Store(&answer)
}

// refusal returns an answer with the status of an error in the form in which the library
// reads it, or as the error that it is.
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
	return nil, &statusError{code: code, text: line(http.StatusText(resp.StatusCode)+" "+string(text), maxQuote)}
}

// isHTTPError reports whether an answer without an error of the protocol is none of the
// protocol. Below 500 the request had no effect.
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

// isAnswer reports whether an error of the protocol to a request counts, not the HTTP
// status that it came with. Refused credentials are for the owner of the agent to correct,
// and 404 is how a server says that a session ended, unless the code says what else there
// is not.
func isAnswer(status int, hasSession bool, code int64) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return false
	case http.StatusNotFound:
		return !hasSession || code == jsonrpc.CodeMethodNotFound || code == jsonrpc.CodeInvalidParams
	}
	return true
}

// isSessionUnknown reports whether the body of a 400 means that the server does not know
// the session, for which the specification has 404: it is an error of the protocol, but
// none to the request. Servers after the examples of the TypeScript SDK answer so.
// https://github.com/modelcontextprotocol/typescript-sdk/tree/v1.x/src/examples/server
func isSessionUnknown(body []byte, answer *jsonrpc.Error) bool {
	return bytes.Contains(body, []byte("No valid session ID provided")) ||
		answer == nil && readObject(readObject(body)["error"]) != nil
}

// A prefixedBody is a body of which the first bytes were read.
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

// looksOld reports whether a server that refuses a POST with this status may speak
// the transport before Streamable HTTP. The specification names these three:
// https://modelcontextprotocol.io/specification/2025-06-18/basic/transports#backwards-compatibility
func looksOld(status int) bool {
	return status == http.StatusBadRequest || status == http.StatusNotFound || status == http.StatusMethodNotAllowed
}

// A limitedBody is the body of an answer, up to a limit.
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
