package main

import (
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
)

// maxEntries bounds each list of a Log.
const maxEntries = 1000

// A Log is the requests that the server has answered.
type Log struct {
	// Pushes are the references that changed, oldest first.
	Pushes []Push `json:"pushes"`
	// Authorizations are the different Authorization headers of all requests, oldest first,
	// also of requests that did not need one.
	Authorizations []Authorization `json:"authorizations"`
	// Refused is how many requests were answered 401.
	Refused int `json:"refused"`
	// Moved is how many requests were answered with a redirect.
	Moved int `json:"moved"`
}

// A Push is a reference that changed. Old or New is empty when there was none.
type Push struct {
	Repository string `json:"repository"`
	Ref        string `json:"ref"`
	Old        string `json:"old"`
	New        string `json:"new"`
}

// An Authorization is an Authorization header by its hash: its value is stored nowhere.
type Authorization struct {
	SHA256   string `json:"sha256"`
	Accepted bool   `json:"accepted"`
	Requests int    `json:"requests"`
}

// A record keeps a Log.
type record struct {
	mu  sync.Mutex
	log Log
}

func newRecord() *record {
	return &record{log: Log{Pushes: []Push{}, Authorizations: []Authorization{}}}
}

// saw counts an Authorization header; an empty one is not counted.
func (r *record) saw(header string, accepted bool) {
	if header == "" {
		return
	}
	passwordHash := fmt.Sprintf("%x", sha256.Sum256([]byte(header)))
	r.mu.Lock()
	defer r.mu.Unlock()
	at := slices.IndexFunc(r.log.Authorizations, func(a Authorization) bool { return a.SHA256 == passwordHash })
	if at < 0 && len(r.log.Authorizations) == maxEntries {
		return
	}
	if at < 0 {
		at = len(r.log.Authorizations)
		r.log.Authorizations = append(r.log.Authorizations, Authorization{SHA256: passwordHash, Accepted: accepted})
	}
	r.log.Authorizations[at].Requests++
}

func (r *record) refused() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log.Refused++
}

func (r *record) moved() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log.Moved++
}

// pushed compares the references of a repository before and after.
func (r *record) pushed(name string, before, after map[string]string) {
	var pushes []Push
	for ref, passwordHash := range after {
		if before[ref] != passwordHash {
			pushes = append(pushes, Push{Repository: name, Ref: ref, Old: before[ref], New: passwordHash})
		}
	}
	for ref, passwordHash := range before {
		if after[ref] == "" {
			pushes = append(pushes, Push{Repository: name, Ref: ref, Old: passwordHash})
		}
	}
	slices.SortFunc(pushes, func(a, b Push) int { return cmp.Compare(a.Ref, b.Ref) })
	r.mu.Lock()
	defer r.mu.Unlock()
	free := maxEntries - len(r.log.Pushes)
	r.log.Pushes = append(r.log.Pushes, pushes[:min(free, len(pushes))]...)
}

// ServeHTTP answers with the Log.
func (r *record) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(r.log) // the client went away
}
