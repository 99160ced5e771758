package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"
)

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
