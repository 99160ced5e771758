package wiretest

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"testing"
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

// Name tells it from the others.
func (r Recording) Name() string { return fmt.Sprintf("%s#%d", filepath.Base(r.File), r.I) }

// Served is an endpoint that answers as the recorded one did, with this body.
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

// Stride is how far the cuts of an answer are apart, so that there are at most
// maxCuts; one byte if DECKHAND_EVERY_BYTE is set, which takes many minutes.
func (r Recording) Stride() int {
	if os.Getenv("DECKHAND_EVERY_BYTE") != "" {
		return 1
	}
	return len(r.Raw)/maxCuts + 1
}

// Recordings are those of a kind in the folder that DECKHAND_RECORDINGS names;
// without it the test is skipped.
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

// folder is the variable that names where recordings are.
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
