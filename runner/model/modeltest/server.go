// Package modeltest has test doubles of model providers, and the conformance suite of adapters. A Server plays a Script
// over the APIs of chat completions, Responses, Messages and Bedrock, in a test or in a pod. The same request always
// gets the same answer, so that an interrupted Run can continue. It refuses what strict providers refuse, and fails on
// demand in the ways of real providers. Run is the suite that every adapter must pass; RunSigned and RunUnsigned are
// the same over the Messages API.
package modeltest

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/deckhand-dev/deckhand/runner/internal/model/frametest"
	"github.com/deckhand-dev/deckhand/runner/step"
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

// AnyModel is the name in a Script for all models without their own dialogue.
const AnyModel = "*"

// A Script has the answers of a Server.
type Script struct {
	// Key, if set, is the only key that is not refused with 401.
	Key string `json:"key,omitempty"`
	// Unsigned imitates providers with the Messages API that sign no thinking but require it with every call: DeepSeek,
	// Kimi.
	Unsigned bool `json:"unsigned,omitempty"`
	// Cache makes the usage report which beginnings of prompts were sent before, as a provider with a prompt cache
	// does.
	Cache bool `json:"cache,omitempty"`
	// RefusesFiles, if set, is the message of the 400 for a request with images or documents, as from a model that
	// accepts none.
	RefusesFiles string `json:"refusesFiles,omitempty"`
	// Models are the dialogues by the name of the model that a request asks for.
	Models map[string]Dialogue `json:"models"`
}

// A Dialogue has the answers of one model, turn by turn. The turn of a request is the number of assistant messages in
// it.
type Dialogue struct {
	Turns []Turn `json:"turns"`
	// After determines the answers after the last turn.
	After After `json:"after,omitempty"`
}

// After determines how a Dialogue continues after its last turn.
type After string

// The ways to continue.
const (
	Refuse After = ""       // HTTP 400: the script ends here
	Repeat After = "Repeat" // the last turn again and again
)

// A Turn is one answer.
//
// Text and the arguments of Calls may quote the request: {{.LastToolResult}} is
// the last tool message in it, {{.LastUserMessage}} the last user message.
type Turn struct {
	Thinking string `json:"thinking,omitempty"`
	Text     string `json:"text,omitempty"`
	Calls    []Call `json:"calls,omitempty"`
	// Finish is the finish. Default: calls if there are Calls, otherwise stop.
	Finish step.Finish `json:"finish,omitempty"`
	// FinishReason replaces the reason that the provider writes for Finish, for example with abort.
	FinishReason string `json:"finishReason,omitempty"`
	// Usage is the usage. Default: computed from the texts.
	Usage *Usage `json:"usage,omitempty"`
	// DelayMS is the pause before each chunk.
	DelayMS int64 `json:"delayMS,omitempty"`
	// Faults are the failures of the first requests of this turn, in order. The request after them is answered.
	Faults []Fault `json:"faults,omitempty"`
}

// A Call is a call of the model. Args is an object, or a string that is sent unchanged, to imitate a model that writes
// invalid JSON.
type Call struct {
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"`
}

// Usage is the reported usage of an answer.
type Usage struct {
	Input     int64 `json:"input"`
	CacheRead int64 `json:"cacheRead,omitempty"`
	// CacheWrite is only in answers of the Messages API.
	CacheWrite int64 `json:"cacheWrite,omitempty"`
	Output     int64 `json:"output"`
	Reasoning  int64 `json:"reasoning,omitempty"`
	// CostUSD is a decimal, such as 0.0042; empty: not reported.
	CostUSD json.Number `json:"costUSD,omitempty"`
}

// A Fault is one way to fail.
type Fault struct {
	Kind FaultKind `json:"kind"`
	// Times is how many requests fail so; 0 means one, -1 all.
	Times int `json:"times,omitempty"`
	// Status and RetryAfter are the HTTP answer of a FaultStatus.
	Status     int    `json:"status,omitempty"`
	RetryAfter string `json:"retryAfter,omitempty"`
	// Message is the message of the error.
	Message string `json:"message,omitempty"`
	// After is how many bytes of the answer precede Cut, Reset, Idle or, as whole events, StreamError.
	After int `json:"after,omitempty"`
}

// FaultKind names a way to fail.
type FaultKind string

// The ways to fail.
const (
	FaultStatus      FaultKind = "Status"      // an HTTP status and an error body
	FaultHTML        FaultKind = "HTML"        // a web page with HTTP 200
	FaultErrorBody   FaultKind = "ErrorBody"   // an error body with HTTP 200
	FaultGarbage     FaultKind = "Garbage"     // bytes that mean nothing
	FaultReset       FaultKind = "Reset"       // the connection is reset
	FaultCut         FaultKind = "Cut"         // the answer ends early, as if it were whole
	FaultIdle        FaultKind = "Idle"        // nothing more comes until the client goes away
	FaultStreamError FaultKind = "StreamError" // an error in the middle of the stream
)

// Parse reads a Script from JSON and refuses unknown fields.
func Parse(data []byte) (Script, error) {
	var s Script
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&s); err != nil {
		return Script{}, fmt.Errorf("decoding the script: %w", err)
	}
	for name, d := range s.Models {
		if err := d.check(); err != nil {
			return Script{}, fmt.Errorf("checking model %q: %w", name, err)
		}
	}
	return s, nil
}

func (d Dialogue) check() error {
	if len(d.Turns) == 0 {
		return errors.New("it has no turns")
	}
	if d.After != Refuse && d.After != Repeat {
		return fmt.Errorf("after is %q, not %q or absent", d.After, Repeat)
	}
	for i, t := range d.Turns {
		for _, f := range t.Faults {
			if _, ok := faults[f.Kind]; !ok {
				return fmt.Errorf("turn %d: no such fault: %q", i, f.Kind)
			}
		}
	}
	return nil
}

// turn returns the answer to a request with n assistant messages.
func (d Dialogue) turn(n int) (Turn, bool) {
	switch {
	case n < len(d.Turns):
		return d.Turns[n], true
	case d.After == Repeat:
		return d.Turns[len(d.Turns)-1], true
	}
	return Turn{}, false
}

// quoting returns the turn with quotations from the request filled in.
func (t Turn) quoting(r Request) Turn {
	t.Text = quote(t.Text, r, func(s string) string { return s })
	calls := make([]Call, len(t.Calls))
	for i, c := range t.Calls {
		calls[i] = Call{Name: c.Name, Args: json.RawMessage(quote(string(c.Args), r, inJSON))}
	}
	t.Calls = calls
	return t
}

func quote(text string, r Request, escape func(string) string) string {
	return strings.NewReplacer(
		"{{.LastToolResult}}", escape(r.last("tool")),
		"{{.LastUserMessage}}", escape(r.last("user")),
	).Replace(text)
}

// inJSON returns s escaped for use within a JSON string.
func inJSON(s string) string {
	quoted, _ := json.Marshal(s) // a string: cannot fail
	return string(quoted[1 : len(quoted)-1])
}

// finish returns why the answer ends.
func (t Turn) finish() step.Finish {
	switch {
	case t.Finish != "":
		return t.Finish
	case len(t.Calls) > 0:
		return step.FinishCalls
	}
	return step.FinishStop
}

// reason returns the finish reason that the provider writes.
func (t Turn) reason(reasons map[step.Finish]string) string {
	return cmp.Or(t.FinishReason, reasons[t.finish()])
}

func (t Turn) delay() time.Duration { return time.Duration(t.DelayMS) * time.Millisecond }

// faults has a handler for each kind of failure, which replaces the answer.
var faults = map[FaultKind]func(Fault, playback) http.HandlerFunc{
	FaultStatus: func(f Fault, p playback) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if f.RetryAfter != "" {
				w.Header().Set("Retry-After", f.RetryAfter)
			}
			p.wire.refuse(w, f.status(), f.message())
		}
	},
	FaultHTML: func(f Fault, _ playback) http.HandlerFunc {
		return answer("text/html", "<!DOCTYPE html><html><title>"+f.message()+"</title></html>")
	},
	FaultErrorBody: func(f Fault, p playback) http.HandlerFunc {
		if p.wire.framed {
			return answer(frametest.ContentType, f.exception())
		}
		return answer("application/json", f.body(p.wire))
	},
	FaultGarbage: func(_ Fault, p playback) http.HandlerFunc {
		if p.wire.framed {
			return answer(frametest.ContentType, "\x00\x00\x00\x40 garbage")
		}
		return answer("text/event-stream", "data: \x00\x01\xff garbage\n\n")
	},
	FaultReset: func(f Fault, p playback) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if f.After > 0 {
				p.before(f.After).serve(w, r)
			}
			hangUp(w)
		}
	},
	FaultCut: func(f Fault, p playback) http.HandlerFunc {
		return p.before(f.After).serve
	},
	FaultIdle: func(f Fault, p playback) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if f.After > 0 {
				p.before(f.After).serve(w, r)
			}
			<-r.Context().Done()
		}
	},
	FaultStreamError: func(f Fault, p playback) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			p.events(f.After).serve(w, r)
			if p.wire.framed {
				answer(frametest.ContentType, f.exception())(w, r)
				return
			}
			answer("text/event-stream", "data: "+f.body(p.wire)+"\n\n")(w, r)
		}
	},
}

// hangUp resets the connection, or, over HTTP/2, the stream.
func hangUp(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // HTTP/2: the stream is reset
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // without it the client sees a mere end
	}
	_ = conn.Close()
}

func (f Fault) message() string { return cmp.Or(f.Message, "scripted "+string(f.Kind)) }

func (f Fault) status() int { return cmp.Or(f.Status, http.StatusInternalServerError) }

func (f Fault) body(on *wire) string { return string(encode(on.failure(f.status(), f.message()))) }

func answer(contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = w.Write([]byte(body)) // the client went away
	}
}
