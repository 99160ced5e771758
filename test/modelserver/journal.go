package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"
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

// How many ids are counted at most, and how long an id may be.
const (
	maxCounts = 10000
	maxID     = 200
)

// A counter counts effects by id, so that a test sees an effect that was repeated.
type counter struct {
	mu     sync.Mutex
	counts map[string]int
}

// add answers POST /count?id=…: it counts the effect, and answers how often it was counted. With &delayMS=… there is a
// pause between the effect and the answer.
func (c *counter) add(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	id := query.Get("id")
	if id == "" || len(id) > maxID {
		http.Error(w, fmt.Sprintf("id needs 1 to %d characters", maxID), http.StatusBadRequest)
		return
	}
	n, ok := c.increment(id)
	if !ok {
		http.Error(w, fmt.Sprintf("%d things are counted already", maxCounts), http.StatusInsufficientStorage)
		return
	}
	delay, _ := strconv.Atoi(query.Get("delayMS")) // none is none
	if pause(r, time.Duration(delay)*time.Millisecond) {
		fmt.Fprintln(w, n)
	}
}

// increment counts an effect; false: there are too many ids.
func (c *counter) increment(id string) (n int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.counts[id]; !known && len(c.counts) == maxCounts {
		return 0, false
	}
	c.counts[id]++
	return c.counts[id], true
}

// list answers GET /counts: the number of effects by id.
func (c *counter) list(w http.ResponseWriter, _ *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(c.counts) // the client went away
}
