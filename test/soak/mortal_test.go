package soak_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
)

// A mortal transport carries the requests of an operator until it is killed, at one of its
// writes. Afterwards nothing that the operator does reaches the API server.
type mortal struct {
	at      int  // the number of the write, from 1; 0: never
	isAfter bool // the write is done, and its answer is lost
	died    chan struct{}

	mu     sync.Mutex
	writes int
	isDead bool
	open   []io.Closer
}

func (m *mortal) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) { return m.roundTrip(next, r) })
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (m *mortal) roundTrip(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	isDue := m.count(r)
	if isDue && !m.isAfter {
		m.die()
	}
	if m.dead() {
		return nil, errKilled
	}
	response, err := next.RoundTrip(r)
	if isDue {
		m.die()
	}
	if err == nil && !m.keep(r, response.Body) {
		_ = response.Body.Close()
		return nil, errKilled
	}
	return response, err
}

// count counts writes of state, and reports whether the operator is killed at this one.
func (m *mortal) count(r *http.Request) bool {
	if r.Method == http.MethodGet || strings.HasSuffix(r.URL.Path, "/events") || strings.Contains(r.URL.Path, "/leases") {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writes++
	return m.writes == m.at
}

// keep keeps a watch, to close it; false: the operator is dead.
func (m *mortal) keep(r *http.Request, body io.Closer) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.URL.Query().Has("watch") {
		m.open = append(m.open, body)
	}
	return !m.isDead
}

func (m *mortal) dead() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.isDead
}

// die ends all requests.
func (m *mortal) die() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.isDead {
		return
	}
	m.isDead = true
	for _, body := range m.open {
		_ = body.Close()
	}
	close(m.died)
}
