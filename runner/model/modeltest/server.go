package modeltest

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
)

// maxBody bounds a request.
const maxBody = 64 << 20

// A Server plays a Script. It is an http.Handler: POST …/chat/completions, POST …/responses and POST …/messages are
// answered, each in its own wire, streamed or not, and POST …/model/ID/invoke-with-response-stream in frames, as
// Bedrock answers. GET /healthz is 200.
//
// The answer depends only on the request. Faults per request and, if the script sets Cache, prompts are counted in
// memory: a restarted Server plays its first faults again and has an empty cache.
type Server struct {
	script   Script
	prefixes Prefixes

	mu       sync.Mutex
	requests []Request
	failed   map[[sha256.Size]byte]int // faults by request
}

// NewServer returns a Server that plays a script.
func NewServer(s Script) *Server {
	return &Server{script: s, failed: map[[sha256.Size]byte]int{}}
}

// Requests returns all requests so far, oldest first.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/healthz":
		fmt.Fprintln(w, "ok")
	case strings.HasSuffix(r.URL.Path, "/chat/completions") && r.Method == http.MethodPost:
		s.complete(w, r, chat)
	case strings.HasSuffix(r.URL.Path, "/responses") && r.Method == http.MethodPost:
		s.complete(w, r, responses)
	case strings.HasSuffix(r.URL.Path, "/messages") && r.Method == http.MethodPost:
		s.complete(w, r, messages)
	case strings.HasSuffix(r.URL.Path, invoke) && r.Method == http.MethodPost:
		s.complete(w, r, bedrock)
	default:
		chat.refuse(w, http.StatusNotFound, fmt.Sprintf("no such path: %s %s", r.Method, r.URL.Path))
	}
}

func (s *Server) complete(w http.ResponseWriter, r *http.Request, on *wire) {
	request, err := s.record(w, r, on)
	if err != nil {
		on.refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	if s.script.Key != "" && !on.shows(r.Header, s.script.Key) {
		on.refuse(w, http.StatusUnauthorized, "Incorrect API key provided")
		return
	}
	turn, err := s.choose(request)
	if err != nil {
		on.refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	play := on.render(request, s.cached(request, turn.quoting(request), on))
	play.wire = on
	if f, ok := s.befall(request, turn.Faults); ok {
		faults[f.Kind](f, play)(w, r)
		return
	}
	play.serve(w, r)
}

// record keeps a request and reads it.
func (s *Server) record(w http.ResponseWriter, r *http.Request, on *wire) (Request, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return Request{}, fmt.Errorf("reading the request: %w", err)
	}
	request := Request{Header: r.Header.Clone(), Raw: body, path: r.URL.EscapedPath()}
	request.strict.unsigned = s.script.Unsigned
	err = on.read(&request)
	s.mu.Lock()
	s.requests = append(s.requests, request)
	s.mu.Unlock()
	if err != nil {
		return Request{}, fmt.Errorf("decoding the request: %w", err)
	}
	if files := request.files(); len(files) > 0 && s.script.RefusesFiles != "" {
		return Request{}, errors.New(s.script.RefusesFiles)
	}
	return request, on.check(request)
}

// choose returns the turn that answers a request.
func (s *Server) choose(r Request) (Turn, error) {
	d, ok := s.script.Models[r.Model]
	if !ok {
		d, ok = s.script.Models[AnyModel]
	}
	if !ok {
		return Turn{}, fmt.Errorf("no script for model %q", r.Model)
	}
	turn, ok := d.turn(r.turn())
	if !ok {
		return Turn{}, fmt.Errorf("the script of model %q has %d turns, this is one more", r.Model, len(d.Turns))
	}
	return turn, nil
}

// befall returns the fault for a request, if any. The same request, sent again, gets the next fault.
func (s *Server) befall(r Request, list []Fault) (Fault, bool) {
	key := sha256.Sum256(r.Raw)
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.failed[key]
	for _, f := range list {
		times := cmp.Or(f.Times, 1)
		if times < 0 || n < times {
			s.failed[key]++
			return f, true
		}
		n -= times
	}
	return Fault{}, false
}
