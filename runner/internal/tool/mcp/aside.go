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

// What is heard of a server aside from its answers.
const (
	maxAside = 16 << 20 // bytes in a session
	// patienceAside is how long the rest waits for the stream.
	patienceAside = 2 * time.Second

	firstAgain  = 5 * time.Second
	longestGap  = 5 * time.Minute
	maxFragment = 1 << 20 // bytes of one event
)

// aside listens to what a server says that is no part of an answer, for as long
// as the session lasts: some ask there, and wait for it to be declined, or tell
// of progress there. A server need not have such a stream. Opened is called when
// it is known whether it has.
//
// The library (go-sdk v1.8.0) reads this stream only if the session is on a
// connection of its own, which it asks for a method that is not exported
// (mcp/client.go:400). Here the session is on the guard, because the library queues
// requests without a bound (internal/jsonrpc2/conn.go:625).
func (l *link) aside(ctx context.Context, to string, opened func()) {
	defer opened()
	heard := 0
	for gap := firstAgain; heard < maxAside && !l.guard.over(); gap = min(2*gap, longestGap) {
		n, err := l.overhear(ctx, to, maxAside-heard, opened)
		heard += n
		if err != nil || !pause(ctx, gap) {
			return
		}
	}
}

var errNoAside = errors.New("there is no such stream")

// overhear reads one stream of events to its end. An error means that there will
// be no other.
func (l *link) overhear(ctx context.Context, to string, limit int, opened func()) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, to, nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Accept", "text/event-stream")
	if id := l.guard.SessionID(); id != "" {
		req.Header.Set(headerSession, id)
	}
	resp, err := l.http.Do(req)
	opened()
	if err != nil {
		var status *statusError
		if errors.As(err, &status) && status.code < http.StatusInternalServerError {
			return 0, errNoAside
		}
		return 0, nil // it may be there later
	}
	defer resp.Body.Close()
	if media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")); resp.StatusCode != http.StatusOK || media != "text/event-stream" {
		return 0, errNoAside
	}
	return l.events(ctx, resp.Body, limit)
}

// events reads events until the stream ends. One that is too large ends it.
func (l *link) events(ctx context.Context, from io.Reader, limit int) (int, error) {
	var lines splitter
	var data []byte
	chunk, read := make([]byte, 16<<10), 0
	for read < limit {
		n, err := from.Read(chunk)
		read += n
		wrong := lines.add(chunk[:n], func(text []byte) error {
			switch rest, ok := bytes.CutPrefix(text, []byte("data:")); {
			case ok && len(data)+len(rest) > maxFragment:
				return errLarge
			case ok:
				data = append(data, bytes.TrimSpace(rest)...)
			case len(text) == 0 && len(data) > 0:
				l.overheard(ctx, data)
				data = nil
			}
			return nil
		})
		if wrong != nil || len(lines.rest) > maxFragment {
			return read, errLarge
		}
		if err != nil {
			return read, nil //nolint:nilerr // streams end
		}
	}
	return read, nil
}

// overheard deals with one message; answers do not belong there.
func (l *link) overheard(ctx context.Context, text []byte) {
	m, err := message(text)
	if err != nil {
		return
	}
	if r, ok := m.(*jsonrpc.Request); ok {
		l.guard.take(ctx, r)
	}
}
