package wiretest

import (
	"bufio"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
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
	Kind    string      `json:"kind"` // chat or anthropic
	Stream  bool        `json:"stream"`
	Status  int         `json:"status"`
	Headers http.Header `json:"headers"`
	Raw     []byte      `json:"raw"`
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

// everyByte is up to which size a stream is cut at each of its bytes.
const everyByte = 10 << 10

// Stride is how far the cuts of an answer are apart: one byte, or spread over a
// plain answer and over a large stream, unless DECKHAND_EVERY_BYTE is set, which
// takes many minutes.
func (r Recording) Stride() int {
	switch {
	case os.Getenv("DECKHAND_EVERY_BYTE") != "":
		return 1
	case testing.Short() || !r.Stream:
		return len(r.Raw)/100 + 1
	case len(r.Raw) > everyByte:
		return len(r.Raw)/1000 + 1
	}
	return 1
}

// Recordings are those of a kind; without any the test is skipped.
func Recordings(t *testing.T, kind string) []Recording {
	t.Helper()
	all, err := read()
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("no recordings: DECKHAND_RECORDINGS names their folder")
	}
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

var read = sync.OnceValues(func() ([]Recording, error) {
	dir := cmp.Or(os.Getenv("DECKHAND_RECORDINGS"), "../../../../shared/recordings")
	file, err := os.Open(filepath.Join(dir, "exchanges.jsonl.gz"))
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
})
