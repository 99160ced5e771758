package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/deckhand-dev/deckhand/runner/internal/tool/auth"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A Server is an MCP server, for as long as it is wanted: a session with it, and
// another one when that breaks.
type Server struct {
	Options
	connector *connector
	stop      context.CancelFunc // ends all sessions

	offered catalog
	absent  *UnavailableError // why there is no server; nil: there is one

	turn    chan struct{} // who may begin a session
	mu      sync.Mutex
	session *session
	// failures is how often in a row a session ended before anything was answered.
	failures int
	closed   bool

	calls   calls
	reading chan struct{} // who reads a resource or a prompt
	noted   sync.Once
}

// Connect begins a session and asks what the server offers. A server that cannot
// be reached is an *UnavailableError, unless the Toolset is optional: then there
// are no tools, and Note says so.
func Connect(ctx context.Context, o Options) (*Server, error) {
	s := &Server{Options: o.withDefaults(), turn: make(chan struct{}, 1), reading: make(chan struct{}, 1)}
	client, err := s.httpClient()
	if err != nil {
		return nil, err
	}
	s.connector = &connector{Options: s.Options, client: client, progressed: s.calls.progressed, changed: s.changed}
	s.connector.life, s.stop = context.WithCancel(context.WithoutCancel(ctx))
	cs, err := s.connector.connectWithRetry(ctx, s.survey)
	switch {
	case err == nil:
		s.session = cs
		return s, nil
	case ctx.Err() != nil:
		s.stop()
		return nil, context.Cause(ctx)
	}
	unavailable := &UnavailableError{Toolset: o.Toolset.Name, Field: s.field(), Err: err}
	if status, is := errors.AsType[*statusError](err); is {
		if unavailable.Remedy = s.remedy(status.code, authField); unavailable.Remedy != "" {
			unavailable.Field = authField
		}
	}
	if o.Toolset.Optional {
		s.absent = unavailable
		s.Log(fmt.Sprintf("it is not available, and optional: %v", err))
		return s, nil
	}
	s.stop()
	return nil, unavailable
}

// Check says what is wrong with how a Toolset is reached by URL, as far as it can
// be seen from here: nil, or where it is and what to write instead.
func Check(ts task.Toolset) error {
	if ts.HTTP == nil {
		return nil
	}
	if _, err := auth.ReadURL(ts.HTTP.URL); err != nil {
		return fmt.Errorf("http.url: %w", err)
	}
	err := auth.Check(ts.HTTP.Headers, ts.HTTP.Auth, "Accept", "Content-Type", "Last-Event-Id", headerSession, headerVersion)
	if err != nil {
		return fmt.Errorf("http.%w", err)
	}
	return nil
}

// httpClient returns the client for a server over HTTP; nil: it is a program.
func (o Options) httpClient() (*http.Client, error) {
	switch {
	case o.Toolset.Stdio != nil:
		if o.Sandbox == nil {
			return nil, fmt.Errorf("the Toolset %s is a program, and there is no sandbox to start it in", o.Toolset.Name)
		}
		return nil, nil //nolint:nilnil // a program has none
	case o.Toolset.HTTP == nil:
		return nil, fmt.Errorf("the Toolset %s is no MCP server", o.Toolset.Name)
	}
	if err := Check(o.Toolset); err != nil {
		return nil, fmt.Errorf("reading the Toolset %s: %w", o.Toolset.Name, err)
	}
	u, err := auth.ReadURL(o.Toolset.HTTP.URL)
	if err != nil {
		return nil, err
	}
	return auth.Client(o.Client, auth.Options{
		URL: u, Headers: o.Toolset.HTTP.Headers, Auth: o.Toolset.HTTP.Auth, Key: o.Key, Learn: o.Learn, Now: o.Now,
	}), nil
}

// Note is a line for the model about what is not there; empty: everything is.
func (s *Server) Note() string {
	if s.absent == nil {
		return ""
	}
	return fmt.Sprintf("The tools of %s are not available in this run: its server could not be reached. Do without them, and say so where it matters.", s.Toolset.Name)
}

// authField is where the credentials of a server are configured.
const authField = "spec.http.auth"

// remedy says what to do if a status means that the server refused the credentials of a
// field.
func (s *Server) remedy(status int, field string) string {
	if s.Toolset.HTTP == nil {
		return ""
	}
	return auth.Remedy(status, field, s.Toolset.HTTP.Auth)
}

// field of the Toolset says where its server is.
func (s *Server) field() string {
	if s.Toolset.HTTP != nil {
		return "spec.http.url"
	}
	return "spec.stdio"
}

// Absent returns why an optional server is not there; nil: it is.
func (s *Server) Absent() *UnavailableError { return s.absent }

// Close ends the session and its program.
func (s *Server) Close() {
	s.mu.Lock()
	cs := s.session
	s.session, s.closed = nil, true
	s.mu.Unlock()
	if cs != nil {
		cs.close()
	}
	s.stop()
}

// get is the session, a new one where the last one ended.
func (s *Server) get(ctx context.Context) (*session, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	cs, failures, err := s.current()
	if cs != nil || err != nil {
		return cs, err
	}
	if failures > 1 && !sleep(ctx, min(firstBackoff<<min(failures, 10), maxBackoff)) {
		return nil, context.Cause(ctx)
	}
	cs, err = s.connector.connectWithRetry(ctx, func(context.Context, *session) error { return nil })
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err != nil:
		s.failures++
		return nil, err
	case s.closed:
		go cs.close()
		return nil, errOver
	}
	s.Log("the session was begun again")
	s.session = cs
	return cs, nil
}

// current is the session that there is; without one, how often in a row it
// failed.
func (s *Server) current() (*session, int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, 0, errOver
	}
	if s.session != nil && !s.session.guard.over() {
		return s.session, 0, nil
	}
	if s.session != nil {
		s.discard(s.session)
	}
	if s.Toolset.Stdio != nil && s.failures >= maxFailures {
		return nil, 0, errGone
	}
	return nil, s.failures, nil
}

// discard closes a session that is over. The lock is held.
func (s *Server) discard(cs *session) {
	s.session = nil
	s.failures++
	go cs.close()
}

// drop ends a session that is of no more use.
func (s *Server) drop(cs *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session == cs {
		s.discard(cs)
	}
}

// answered notes that a session is of use.
func (s *Server) answered(cs *session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.session == cs {
		s.failures = 0
	}
}

// changed notes that the server offers something else now.
func (s *Server) changed() {
	s.noted.Do(func() {
		s.Log("it offers something else now; the list of tools stays as it is until the next attempt")
	})
}
