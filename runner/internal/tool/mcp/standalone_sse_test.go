package mcp

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// A server may send a request on the stream that is apart from its answers, and
// wait with the answer until it is declined.
func TestARequestOnTheStandaloneStreamIsDeclined(t *testing.T) {
	asked, declined := make(chan struct{}), make(chan string, 1)
	p := &fakeHTTPServer{special: func(w http.ResponseWriter, r *http.Request, q request) bool {
		switch {
		case r.Method == http.MethodGet:
			w.Header().Set("Content-Type", "text/event-stream")
			w.(http.Flusher).Flush()
			select {
			case <-asked:
			case <-r.Context().Done():
				return true
			}
			_, _ = io.WriteString(w, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":7,\r\ndata: \"method\":\"elicitation/create\",\"params\":{}}\r\n\r\n")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			return true
		case q.Method == "tools/call":
			close(asked)
			_, _ = io.WriteString(io.Discard, <-declined)
		case q.Method == "" && string(q.ID) == "7":
			declined <- r.Header.Get(headerSession)
			w.WriteHeader(http.StatusAccepted)
			return true
		}
		return false
	}}
	s, _ := connect(t, p)
	if got := use(t, s, "do", `{}`).Render(); got != "done by s1" {
		t.Errorf("got %s", got)
	}
}

func TestAFloodOnTheStandaloneStreamIsBounded(t *testing.T) {
	var streams atomic.Int32
	ended := make(chan struct{}, 1)
	for name, what := range map[string]string{
		"a line without an end":    "x",
		"an event without an end":  "data: x\n",
		"one event after the next": "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			s, _ := connect(t, &fakeHTTPServer{special: func(w http.ResponseWriter, r *http.Request, _ request) bool {
				if r.Method != http.MethodGet {
					return false
				}
				streams.Add(1)
				w.Header().Set("Content-Type", "text/event-stream")
				flood(w, strings.Repeat(what, 100), 1<<30)
				ended <- struct{}{}
				return true
			}})
			used := memory(func() {
				select {
				case <-ended:
				case <-time.After(time.Minute):
					t.Error("it is listened to without an end")
				}
			})
			if used > 100<<20 {
				t.Errorf("it took %d MiB", used>>20)
			}
			if got := use(t, s, "do", `{}`).Render(); got != "done by s1" {
				t.Errorf("got %s", got)
			}
		})
	}
}
