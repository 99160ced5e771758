package wiretest

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// A Recording is one exchange with a real provider.
type Recording struct {
	File    string      `json:"file"`
	I       int         `json:"i"`
	Host    string      `json:"host"`
	Kind    string      `json:"kind"` // chat, anthropic or responses
	Stream  bool        `json:"stream"`
	Status  int         `json:"status"`
	Headers http.Header `json:"headers"`
	Raw     []byte      `json:"raw"`
	// Req is the body of the request.
	Req json.RawMessage `json:"req"`
}

// Name identifies the recording.
func (r Recording) Name() string { return fmt.Sprintf("%s#%d", filepath.Base(r.File), r.I) }

// Served returns an endpoint that gives the recorded answer with another body.
func (r Recording) Served(body io.Reader) RoundTrip {
	header := http.Header{}
	for name, values := range r.Headers {
		header[http.CanonicalHeaderKey(name)] = values
	}
	return func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: r.Status, Header: header, Body: io.NopCloser(body)}, nil
	}
}

// maxCuts bounds at how many places an answer is cut.
const maxCuts = 100

// Stride returns the distance between the cuts of an answer, with at most maxCuts of them; one byte if
// DECKHAND_EVERY_BYTE is set, which takes many minutes.
func (r Recording) Stride() int {
	if os.Getenv("DECKHAND_EVERY_BYTE") != "" {
		return 1
	}
	return len(r.Raw)/maxCuts + 1
}

// Recordings returns the recordings of a kind in the folder that DECKHAND_RECORDINGS names; without it the test is
// skipped.
func Recordings(t *testing.T, kind string) []Recording {
	t.Helper()
	if os.Getenv(folder) == "" {
		t.Skip(folder + " names no folder with recordings")
	}
	all, err := read()
	if err != nil {
		t.Fatal(err)
	}
	var of []Recording
	for _, r := range all {
		if r.Kind == kind {
			of = append(of, r)
		}
	}
	return of
}

// folder is the environment variable with the folder of the recordings.
const folder = "DECKHAND_RECORDINGS"

// read reads all files of recordings in the folder.
var read = sync.OnceValues(func() ([]Recording, error) {
	files, err := filepath.Glob(filepath.Join(os.Getenv(folder), "*.jsonl.gz"))
	if err != nil {
		return nil, err
	}
	var all []Recording
	for _, name := range files {
		of, err := readFile(name)
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", name, err)
		}
		all = append(all, of...)
	}
	return all, nil
})

func readFile(name string) ([]Recording, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return nil, err
	}
	var all []Recording
	lines := bufio.NewScanner(unzipped)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var r Recording
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, err
		}
		all = append(all, r)
	}
	return all, lines.Err()
}

// RoundTrip is a network of one answer.
type RoundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements [http.RoundTripper].
func (rt RoundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return rt(r) }

// Answering returns an endpoint that always gives the same answer.
func Answering(status int, contentType, body string, headers ...string) RoundTrip {
	h := http.Header{"Content-Type": {contentType}}
	for i := 0; i+1 < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	return func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}

// Dripping returns an endpoint that writes a piece of its answer at each interval. After the last piece it keeps the
// connection open and writes nothing.
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

// CanonicalJSON returns JSON in one spelling. Other text is unchanged.
func CanonicalJSON(s string) string {
	var v any
	if json.Unmarshal([]byte(s), &v) != nil {
		return s
	}
	data, _ := json.Marshal(v)
	return string(data)
}
