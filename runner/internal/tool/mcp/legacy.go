package mcp

import (
	"bufio"
	"context"
	"io"
	"mime"
	"net/http"
	"strings"
)

// maxEndpoint is how much of a stream is read for the event that tells the old
// transport, in bytes.
const maxEndpoint = 4 << 10

// speaksSSE reports whether a server speaks the HTTP+SSE transport of 2024-11-05:
// it answers a GET with a stream whose first event is named endpoint.
func (cs *session) speaksSSE(ctx context.Context, url string) bool {
	ctx, cancel := context.WithTimeout(ctx, discoveryTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := cs.http.Do(req)
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
