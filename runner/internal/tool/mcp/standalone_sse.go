package mcp

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
)

// Bounds of the standalone stream.
const (
	maxStandalone = 16 << 20 // bytes in a session
	// standaloneOpenTimeout is how long the session waits until the stream is open.
	standaloneOpenTimeout = 2 * time.Second

	firstReconnect = 5 * time.Second
	maxReconnect   = 5 * time.Minute
	maxEvent       = 1 << 20 // bytes of one event
)

// listenStandalone reads the stream of a server apart from its answers, as long as the
// session lasts: some servers send requests there, and wait until they are declined, or
// progress. A server may have no such stream. Opened is called when that is known.
// https://modelcontextprotocol.io/specification/2025-06-18/basic/transports#listening-for-messages-from-the-server
//
// The library (go-sdk v1.8.0) reads this stream only if the session is on a
// connection of its own, which it asks for a method that is not exported
// (mcp/client.go:400). Here the session is on the guard, because the library queues
// requests without a bound (internal/jsonrpc2/conn.go:625).
func (cs *session) listenStandalone(ctx context.Context, to string, opened func()) {
	defer opened()
	heard := 0
	for gap := firstReconnect; heard < maxStandalone && !cs.guard.over(); gap = min(2*gap, maxReconnect) {
		n, err := cs.readStandalone(ctx, to, maxStandalone-heard, opened)
		heard += n
		if err != nil || !sleep(ctx, gap) {
			return
		}
	}
}

var errNoStandalone = errors.New("there is no such stream")

// readStandalone reads one stream of events to its end. An error means that there will
// be no other.
func (cs *session) readStandalone(ctx context.Context, to string, limit int, opened func()) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, to, nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Accept", "text/event-stream")
	if id := cs.guard.SessionID(); id != "" {
		req.Header.Set(headerSession, id)
	}
	resp, err := cs.http.Do(req)
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
	return cs.readEvents(ctx, resp.Body, limit)
}

// readEvents reads events until the stream ends. One that is too large ends it.
func (cs *session) readEvents(ctx context.Context, from io.Reader, limit int) (int, error) {
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
				cs.handleStandalone(ctx, data)
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
func (cs *session) handleStandalone(ctx context.Context, text []byte) {
	m, err := message(text)
	if err != nil {
		return
	}
	if r, ok := m.(*jsonrpc.Request); ok {
		cs.guard.handleRequest(ctx, r)
	}
}
