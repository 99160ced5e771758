package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// A Page is a fixed answer.
type Page struct {
	// Status is the HTTP status. Default 200.
	Status      int               `json:"status,omitempty"`
	ContentType string            `json:"contentType,omitempty"`
	Headers     map[string]string `json:"headers,omitempty"`
	Body        string            `json:"body,omitempty"`
	// Repeat is how many times the body is sent; 0 means once, -1 until the
	// client goes away.
	Repeat int `json:"repeat,omitempty"`
	// DelayMS is the pause before the answer.
	DelayMS int64 `json:"delayMS,omitempty"`
}

// parsePages makes a mux of pages by pattern; empty data holds none.
func parsePages(data []byte) (mux *http.ServeMux, err error) {
	mux = http.NewServeMux()
	if len(data) == 0 {
		return mux, nil
	}
	var pages map[string]Page
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&pages); err != nil {
		return nil, fmt.Errorf("decoding the pages: %w", err)
	}
	defer func() {
		if wrong := recover(); wrong != nil { // how a mux refuses a pattern
			err = fmt.Errorf("adding the pages: %v", wrong)
		}
	}()
	for pattern, page := range pages {
		mux.Handle(pattern, page)
	}
	return mux, nil
}

func (p Page) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !pause(r, time.Duration(p.DelayMS)*time.Millisecond) {
		return
	}
	w.Header().Set("Content-Type", cmp.Or(p.ContentType, "text/plain; charset=utf-8"))
	for name, value := range p.Headers {
		w.Header().Set(name, value)
	}
	w.WriteHeader(cmp.Or(p.Status, http.StatusOK))
	for n := cmp.Or(p.Repeat, 1); n != 0; n-- {
		if _, err := w.Write([]byte(p.Body)); err != nil || p.Body == "" {
			return // the client went away
		}
	}
}

// pause waits, unless the client goes away.
func pause(r *http.Request, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-r.Context().Done():
		return false
	case <-timer.C:
		return true
	}
}
