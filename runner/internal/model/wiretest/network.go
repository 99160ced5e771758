package wiretest

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"
)

// RoundTrip is a network of one answer.
type RoundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements [http.RoundTripper].
func (f RoundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Answering is an endpoint that always answers this.
func Answering(status int, contentType, body string, headers ...string) RoundTrip {
	h := http.Header{"Content-Type": {contentType}}
	for i := 0; i+1 < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	return func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}

// Dripping is an endpoint that writes a piece every so often. When the pieces
// are used up it keeps the connection open without a word.
func Dripping(every time.Duration, pieces ...string) RoundTrip {
	return func(r *http.Request) (*http.Response, error) {
		reader, writer := io.Pipe()
		go func() {
			for _, piece := range pieces {
				select {
				case <-time.After(every): // in the bubble's time
				case <-r.Context().Done():
					return
				}
				if _, err := io.WriteString(writer, piece); err != nil {
					return
				}
			}
		}()
		context.AfterFunc(r.Context(), func() { writer.CloseWithError(r.Context().Err()) })
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: reader}, nil
	}
}

// Chopped gives its data in pieces of a size.
type Chopped struct {
	Data []byte
	Size int
}

// Read implements [io.Reader].
func (c *Chopped) Read(p []byte) (int, error) {
	if len(c.Data) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.Data[:min(c.Size, len(c.Data))])
	c.Data = c.Data[n:]
	return n, nil
}

// CanonicalJSON is JSON in one spelling; what is no JSON stays.
func CanonicalJSON(s string) string {
	var v any
	if json.Unmarshal([]byte(s), &v) != nil {
		return s
	}
	data, _ := json.Marshal(v)
	return string(data)
}
