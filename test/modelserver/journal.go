package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"sync"
)

// What is kept of requests: so many, and so many bytes of the body of each.
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

// A journal keeps what was asked.
type journal struct {
	mu      sync.Mutex
	entries []Entry
}

// record keeps a request, whose body can still be read after that.
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

// ServeHTTP tells what was asked.
func (j *journal) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	j.mu.Lock()
	defer j.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(j.entries) // the client went away
}
