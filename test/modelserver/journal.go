package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"sync"
)

// Bounds of the journal: the number of requests, and the bytes of the body of each.
const (
	maxEntries = 2000
	maxBody    = 256 << 10
)

// An Entry is one request.
type Entry struct {
	Method string      `json:"method"`
	Host   string      `json:"host"`
	Path   string      `json:"path"`
	Header http.Header `json:"header"`
	Body   string      `json:"body"`
}

// A journal keeps the latest requests.
type journal struct {
	mu      sync.Mutex
	entries []Entry
}

// record keeps a request. Its body can still be read after that.
func (j *journal) record(r *http.Request) {
	head, _ := io.ReadAll(io.LimitReader(r.Body, maxBody)) // what fails here fails again for whoever reads on
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), r.Body), r.Body}
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.entries) < maxEntries {
		j.entries = append(j.entries, Entry{Method: r.Method, Host: r.Host, Path: r.URL.RequestURI(), Header: r.Header.Clone(), Body: string(head)})
	}
}

// ServeHTTP answers with the requests, oldest first.
func (j *journal) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	j.mu.Lock()
	defer j.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(j.entries) // the client went away
}
