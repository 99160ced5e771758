package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// How many things are counted, and how long their names are.
const (
	maxCounts = 10000
	maxID     = 200
)

// A counter counts effects: what was done twice is seen here.
type counter struct {
	mu     sync.Mutex
	counts map[string]int
}

// add counts POST /count?id=…, and answers how often that was asked for. The
// effect is first; &delayMS=… puts a pause between it and its answer.
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

// increment says no when too many things are counted.
func (c *counter) increment(id string) (n int, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, known := c.counts[id]; !known && len(c.counts) == maxCounts {
		return 0, false
	}
	c.counts[id]++
	return c.counts[id], true
}

// list answers GET /counts: how often by id.
func (c *counter) list(w http.ResponseWriter, _ *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(c.counts) // the client went away
}
