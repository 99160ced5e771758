package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/deckhand-dev/deckhand/internal/shared/quote"
	"github.com/deckhand-dev/deckhand/runner/internal/address"
	"github.com/deckhand-dev/deckhand/runner/internal/sandbox"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/auth"
)

// legacy is the newest version of the protocol whose sessions begin with
// "initialize".
const legacy = "2025-11-25"

// workspace is the directory where a server in the sandbox finds the files.
const workspace = "/workspace"

// A session is one session with a server.
type session struct {
	client    *mcp.ClientSession
	guard     *guard
	end       context.CancelFunc
	stdio     *stdioConn    // nil over HTTP
	http      *http.Client  // nil otherwise
	transport *roundTripper // of it
}

// close ends the session, and everything that waits for it.
func (s *session) close() {
	late := time.AfterFunc(closeTimeout, s.end) // a server may not answer the request to close
	defer late.Stop()
	_ = s.guard.Close()
	if s.stdio != nil {
		<-s.stdio.finished
	}
	s.end()
	if s.client != nil {
		_ = s.client.Close()
	}
}

// endReason returns why the session ended, if that is known.
func (s *session) endReason() error {
	if s.stdio == nil {
		return nil
	}
	return s.stdio.endReason()
}

// A readyTransport is a transport whose connection already exists.
type readyTransport struct{ connection mcp.Connection }

// Connect implements [mcp.Transport].
func (t readyTransport) Connect(context.Context) (mcp.Connection, error) { return t.connection, nil }

// A connector opens sessions with a server.
type connector struct {
	Options
	client *http.Client    // nil: the server is a program
	life   context.Context //nolint:containedctx // sessions outlive the calls that begin them
	old    atomic.Bool     // the server wants sessions to begin as old versions of the protocol do
	// progressed is called with the progress of a call, changed when the server's offers change.
	progressed func(token, text string)
	changed    func()
}

// dial opens a session. version is the version to start with; empty: the newest.
func (c *connector) dial(ctx context.Context, version string) (*session, error) {
	life, end := context.WithCancel(c.life)
	cs := &session{end: end}
	err := c.connect(ctx, life, cs)
	if err != nil {
		end()
		return nil, err
	}
	cs.guard.progress, cs.guard.changed = c.progressed, c.changed
	if c.Toolset.Stdio != nil && c.Toolset.Stdio.InSandbox {
		cs.guard.root = workspace
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "deckhand", Version: "1"}, &mcp.ClientOptions{
		Capabilities:   c.capabilities(),
		MultiRoundTrip: &mcp.MultiRoundTripOptions{Disabled: true}, // there is no user to ask
	})
	err = safely(func() error {
		var err error
		cs.client, err = client.Connect(ctx, readyTransport{cs.guard}, &mcp.ClientSessionOptions{ProtocolVersion: version})
		return err
	})
	if err == nil {
		if cs.http != nil && cs.guard.version() != "" { // newer versions of the protocol have no such stream
			cs.openStandalone(ctx, life, c.Toolset.HTTP.URL)
		}
		return cs, nil
	}
	cs.client = nil
	if cs.transport != nil {
		err = cs.atPath(ctx, c.Toolset.HTTP.URL, err)
	}
	last := cs.endReason()
	go cs.close()
	return nil, because(ctx, err, last)
}

// atPath returns why no session could be opened at a URL: the server there speaks the old transport, or there is none.
func (s *session) atPath(ctx context.Context, at string, err error) error {
	if s.transport.refused.Load() && s.speaksSSE(ctx, at) {
		return errOldTransport
	}
	answer := s.transport.elsewhere.Load()
	if answer == nil {
		return err
	}
	path := "/"
	if u, parseErr := url.Parse(at); parseErr == nil && u.Path != "" {
		path = u.Path
	}
	return fmt.Errorf("%s: there is no MCP server at the path %s. Correct the path of spec.http.url of the Toolset, which is often /mcp", *answer, quote.Line(path, maxQuote))
}

// openStandalone opens the standalone stream before the first request, because some servers send everything to the
// stream that was opened last.
func (s *session) openStandalone(ctx, life context.Context, to string) {
	ctx, cancel := context.WithTimeout(ctx, standaloneOpenTimeout)
	defer cancel()
	opened := make(chan struct{})
	go s.listenStandalone(life, to, sync.OnceFunc(func() { close(opened) }))
	select {
	case <-opened:
	case <-ctx.Done():
	}
}

// because returns the most informative of the errors for which no session was opened.
func because(ctx context.Context, err, last error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		err = errors.New("it did not answer in time")
	}
	switch {
	case last == nil:
		return err
	case errors.Is(err, mcp.ErrConnectionClosed), isEOF(err):
		return last
	}
	return fmt.Errorf("%w; %w", err, last)
}

// connect makes the connection of a session.
func (c *connector) connect(ctx, life context.Context, cs *session) error {
	if c.Toolset.Stdio != nil {
		process, err := c.start(ctx, life)
		if err != nil {
			return err
		}
		cs.stdio = newStdioConn(process, c.Log)
		cs.guard = newGuard(cs.stdio)
		return nil
	}
	w := &roundTripper{base: c.client.Transport, life: life, version: func() string { return cs.guard.version() }}
	cs.transport = w
	cs.http = &http.Client{Transport: w, CheckRedirect: c.client.CheckRedirect}
	connection, err := (&mcp.StreamableClientTransport{
		Endpoint:     c.Toolset.HTTP.URL,
		HTTPClient:   cs.http,
		MaxEventSize: maxMessage,
		// listenStandalone reads it, for the guard.
		DisableStandaloneSSE: true,
	}).Connect(ctx)
	if err != nil {
		return fmt.Errorf("connecting: %w", err)
	}
	cs.guard = newGuard(connection)
	return nil
}

// start starts the program. The program runs until life ends; ctx bounds how long the start may take.
func (c *connector) start(ctx, life context.Context) (sandbox.Process, error) {
	starting, cancel := context.WithCancel(life)
	stop := context.AfterFunc(ctx, cancel)
	command := sandbox.Command{ID: "mcp:" + c.Toolset.Name, Args: c.Toolset.Stdio.Command}
	if c.Toolset.Stdio.InSandbox {
		command.Env = c.Toolset.Stdio.Env
	}
	process, err := c.Sandbox.Start(starting, command)
	if err != nil {
		cancel()
		return nil, err
	}
	if !stop() { // the time was up in the same moment
		_ = process.Kill()
		cancel()
		return nil, context.Cause(ctx)
	}
	context.AfterFunc(life, cancel)
	return process, nil
}

// capabilities returns the capabilities that this client announces to a server.
func (c *connector) capabilities() *mcp.ClientCapabilities {
	if c.Toolset.Stdio != nil && c.Toolset.Stdio.InSandbox {
		return &mcp.ClientCapabilities{RootsV2: &mcp.RootCapabilities{}} //nolint:staticcheck // servers of files still ask for it
	}
	return &mcp.ClientCapabilities{}
}

// safely calls the library with a message of a server. A panic becomes an error.
func safely(f func() error) (err error) {
	defer func() {
		if recover() != nil {
			err = errPanic
		}
	}()
	return f()
}

// connectWithRetry opens a session, and tries again while that may help.
func (c *connector) connectWithRetry(ctx context.Context, use func(context.Context, *session) error) (*session, error) {
	ctx, cancel := context.WithTimeout(ctx, c.ConnectTimeout)
	defer cancel()
	wait := firstBackoff
	var last error
	for n := 0; ; n++ {
		cs, err := c.attempt(ctx, n, use)
		if err == nil {
			return cs, nil
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		if c.life.Err() != nil {
			return nil, errOver
		}
		if final(err) || !sleep(ctx, wait) {
			return nil, last
		}
		wait = min(2*wait, maxBackoff)
	}
}

// attempt tries once. Every second try starts with the version for old servers, because some do not even refuse an
// unknown version.
func (c *connector) attempt(ctx context.Context, n int, use func(context.Context, *session) error) (*session, error) {
	if c.Toolset.HTTP != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, handshakeTimeout)
		defer cancel()
	}
	version := ""
	if (n%2 == 1) != c.old.Load() {
		version = legacy
	}
	cs, err := c.dial(ctx, version)
	if err != nil {
		return nil, err
	}
	if err := use(ctx, cs); err != nil {
		last := cs.endReason()
		go cs.close()
		return nil, because(ctx, err, last)
	}
	c.old.Store(version == legacy)
	return cs, nil
}

// final reports whether trying again cannot help.
func final(err error) bool {
	var (
		status   *statusError
		addr     *address.RefusedError
		redirect *auth.RedirectError
		refused  *sandbox.RefusedError
		token    *auth.TokenError
	)
	if errors.As(err, &token) {
		return token.IsFinal()
	}
	if errors.As(err, &status) {
		return status.code == http.StatusUnauthorized || status.code == http.StatusForbidden
	}
	if errors.As(err, &refused) {
		return refused.Reason != sandbox.Busy
	}
	return errors.As(err, &addr) || errors.As(err, &redirect) || errors.Is(err, errOldTransport)
}

// sleep waits. It returns false if the context ended.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// traceparent is the name of the W3C trace context, as a header and in the _meta of a request.
// https://opentelemetry.io/docs/specs/semconv/gen-ai/mcp/
const traceparent = "traceparent"

// traceKey is the key of the trace context in a context.
type traceKey struct{}

// withTrace returns a context for the requests of a tool call.
func (s *Server) withTrace(ctx context.Context, callID string) context.Context {
	if s.Traceparent == nil {
		return ctx
	}
	return context.WithValue(ctx, traceKey{}, s.Traceparent(callID))
}

func traceOf(ctx context.Context) string {
	value, _ := ctx.Value(traceKey{}).(string)
	return value
}

// addTrace adds the trace context to the _meta of a request.
func addTrace(ctx context.Context, params mcp.Params) {
	value := traceOf(ctx)
	if value == "" {
		return
	}
	meta := params.GetMeta()
	if meta == nil {
		meta = map[string]any{}
	}
	meta[traceparent] = value
	params.SetMeta(meta)
}

// calls are the active calls, by their progress tokens.
type calls struct {
	mu   sync.Mutex
	last int64
	open map[string]func(text string)
}

// begin registers a call that receives progress.
func (c *calls) begin(hear func(text string)) (token string, end func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	token = "call-" + strconv.FormatInt(c.last, 10)
	if c.open == nil {
		c.open = map[string]func(string){}
	}
	c.open[token] = hear
	return token, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.open, token)
	}
}

// progressed passes progress on to its call. Progress without a call is dropped.
func (c *calls) progressed(token, text string) {
	c.mu.Lock()
	hear := c.open[token]
	c.mu.Unlock()
	if hear != nil {
		hear(text)
	}
}

// often is the shortest interval between two reports of progress to users.
const often = 500 * time.Millisecond

// A ticker shows the progress of a call, at most once per interval.
type ticker struct {
	emit func(string)
	now  func() time.Time

	mu   sync.Mutex
	last time.Time
}

func (t *ticker) show(text string) {
	t.mu.Lock()
	now := t.now()
	due := now.Sub(t.last) >= often
	if due {
		t.last = now
	}
	t.mu.Unlock()
	if due && text != "" {
		t.emit(text)
	}
}
