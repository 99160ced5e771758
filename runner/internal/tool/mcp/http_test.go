package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/deckhand-dev/deckhand/runner/internal/callreport"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// remoteAt is a Toolset that is reached by URL.
func remoteAt(url string) task.Toolset {
	return task.Toolset{Name: "web", HTTP: &task.HTTPServer{URL: url}}
}

// connect connects to a handler.
func connect(t *testing.T, h http.Handler, change ...func(*Options)) (*Server, *httptest.Server) {
	t.Helper()
	web := httptest.NewServer(h)
	t.Cleanup(web.Close)
	o := Options{Toolset: remoteAt(aliased(web.URL)), Client: local(web), ConnectTimeout: 5 * time.Second}
	for _, c := range change {
		c(&o)
	}
	s, err := Connect(t.Context(), o)
	if err != nil {
		t.Fatalf("Connect: %v", err)
	}
	t.Cleanup(s.Close)
	return s, web
}

// aliased is the URL of a test's server by a name: loopback is no place for a
// Toolset to name.
func aliased(url string) string { return strings.Replace(url, "127.0.0.1", "server.test", 1) }

// local reaches a test's server whatever the name.
func local(web *httptest.Server) *http.Client {
	var d net.Dialer
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return d.DialContext(ctx, network, web.Listener.Addr().String())
	}}}
}

func TestOverHTTP(t *testing.T) {
	for name, o := range map[string]*sdk.StreamableHTTPOptions{
		"streams": {}, "JSON": {JSONResponse: true}, "without sessions": {Stateless: true},
	} {
		t.Run(name, func(t *testing.T) {
			o.DisableLocalhostProtection = true // the name that it is reached by is none of this machine
			handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return library() }, o)
			s, _ := connect(t, handler)
			if got := use(t, s, "add", `{"a":2,"b":3}`).Render(); got != `{"sum":5}` {
				t.Errorf("got %s", got)
			}
			has(t, use(t, s, "mixed.parts", `{}`).Render(), "[image image/png, 12 KB]")
		})
	}
}

// A fakeHTTPServer answers requests over HTTP by hand.
type fakeHTTPServer struct {
	mu       sync.Mutex
	sessions int
	seen     []*http.Request
	// special may answer in place of the usual; false: it did not.
	special func(w http.ResponseWriter, r *http.Request, q request) bool
}

func (f *fakeHTTPServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var q request
	_ = json.Unmarshal(body, &q)
	f.mu.Lock()
	f.seen = append(f.seen, r.Clone(context.Background()))
	f.mu.Unlock()
	if f.special != nil && f.special(w, r, q) {
		return
	}
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case q.ID == nil:
		w.WriteHeader(http.StatusAccepted)
	case q.Method == "initialize":
		f.mu.Lock()
		f.sessions++
		w.Header().Set("Mcp-Session-Id", fmt.Sprint("s", f.sessions))
		f.mu.Unlock()
		_, _ = io.WriteString(w, answerTo(q, hello))
	case q.Method == "tools/list":
		_, _ = io.WriteString(w, answerTo(q, `{"tools":[{"name":"do","inputSchema":{"type":"object"}}]}`))
	case q.Method == "tools/call":
		_, _ = io.WriteString(w, answerTo(q, `{"content":[{"type":"text","text":"done by `+r.Header.Get("Mcp-Session-Id")+`"}]}`))
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// A fakeAnswer answers a call.
type fakeAnswer func(w http.ResponseWriter, r *http.Request, q request)

// first answers only the first call of a tool so.
func first(f fakeAnswer) func(http.ResponseWriter, *http.Request, request) bool {
	var n atomic.Int32
	return func(w http.ResponseWriter, r *http.Request, q request) bool {
		if q.Method != "tools/call" || n.Add(1) > 1 {
			return false
		}
		f(w, r, q)
		return true
	}
}

func TestTheVersionIsSentOnceItIsKnown(t *testing.T) {
	p := &fakeHTTPServer{}
	s, _ := connect(t, p, func(o *Options) { o.Toolset.HTTP.Headers = map[string]string{"X-Team": "red"} })
	use(t, s, "do", `{}`)
	last := p.seen[len(p.seen)-1]
	if got := last.Header.Get("Mcp-Protocol-Version"); got != legacy {
		t.Errorf("the version is %q", got)
	}
	if last.Header.Get("X-Team") != "red" {
		t.Error("the headers of the Toolset are not sent")
	}
}

func TestAnsweredOverHTTP(t *testing.T) {
	status := func(code int, body string) fakeAnswer {
		return func(w http.ResponseWriter, _ *http.Request, _ request) { http.Error(w, body, code) }
	}
	hijack := func(w http.ResponseWriter, _ *http.Request, _ request) {
		c, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = c.Close()
		}
	}
	cases := map[string]struct {
		effect  tool.Effect
		special fakeAnswer // of the first call
		want    []string
	}{
		"a session that the server forgot is begun again": {
			tool.Once, status(404, `{"jsonrpc":"2.0","id":"server-error","error":{"code":-32600,"message":"Session not found"}}`), []string{"done by s2", "done by s2"},
		},
		"a session that the server forgot, by a server that answers 400": {
			tool.Once, status(400, `{"jsonrpc":"2.0","error":{"code":-32000,"message":"Bad Request: No valid session ID provided"},"id":7}`), []string{"done by s2", "done by s2"},
		},
		"a connection that is lost": {
			tool.Once, hijack, []string{"Error: the connection to the MCP server of web was lost during the call; it may have partly happened: ", "done by s"},
		},
		"a connection that is lost while something is read": {tool.ReadOnly, hijack, []string{"done by s"}},
		"a server that is busy":                             {tool.Once, status(503, "try later"), []string{"Error: the MCP server of web refused the request: it answered 503 Service Unavailable try later", "done by s1"}},
		"a server that breaks":                              {tool.Once, status(502, "bad gateway"), []string{"Error: the connection to the MCP server of web was lost during the call; it may have partly happened: ", "done by s1"}},
		"a server that breaks while something is read":      {tool.ReadOnly, status(502, "bad gateway"), []string{"done by s1"}},
		"one who may not":                                   {tool.Once, status(403, "not you"), []string{"Error: the MCP server of web refused the request: it answered 403 Forbidden not you\n- Nothing was done.\n- Only the owner of the agent can correct this: Set spec.http.auth of Toolset web to credentials that the server accepts.", "done by s1"}},
		"too many requests":                                 {tool.Once, status(429, ""), []string{"Error: the MCP server of web refused the request: it answered 429 Too Many Requests", "done by s1"}},
		"an answer that is too large": {
			tool.Once, func(w http.ResponseWriter, _ *http.Request, _ request) {
				w.Header().Set("Content-Type", "application/json")
				flood(w, " ", 1<<30)
			}, []string{"it may have partly happened: ", "done by s2"},
		},
		"a page of HTML": {
			tool.Once, func(w http.ResponseWriter, _ *http.Request, _ request) {
				w.Header().Set("Content-Type", "text/html")
				_, _ = io.WriteString(w, "<html>")
			}, []string{"it may have partly happened: ", "done by s"},
		},
		"a stream that ends too early": {
			tool.Once, func(w http.ResponseWriter, _ *http.Request, _ request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, ": hello\n\n")
			}, []string{"it may have partly happened: ", "done by s"},
		},
		"a stream that goes on after the answer": {
			tool.Once, func(w http.ResponseWriter, r *http.Request, q request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, "data: "+answerTo(q, `{"content":[{"type":"text","text":"streamed"}]}`)+"\n\n")
				for r.Context().Err() == nil {
					if _, err := io.WriteString(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{}}\n\n"); err != nil {
						break
					}
				}
			}, []string{"streamed", "done by s1"},
		},
		"a redirect to another host": {
			tool.Once, func(w http.ResponseWriter, r *http.Request, _ request) {
				http.Redirect(w, r, "http://elsewhere.test/mcp", http.StatusTemporaryRedirect)
			}, []string{"the redirect to http://elsewhere.test/mcp is not followed", "done by s"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := connect(t, &fakeHTTPServer{special: first(tc.special)}, func(o *Options) {
				if tc.effect == tool.ReadOnly {
					o.Toolset.ReadOnly = []string{"do"}
				}
			})
			for i, want := range tc.want {
				if got := use(t, s, "do", `{}`).Render(); !strings.Contains(got, want) {
					t.Errorf("call %d says %s\nwant %s", i, got, want)
				}
			}
		})
	}
}

// An error of the protocol is an answer whatever the HTTP status says, if it is one to the
// request: then the session goes on, and it is known what happened.
func TestErrorsOfTheProtocolWithAnHTTPStatus(t *testing.T) {
	const (
		answered = "Error: the MCP server of web answered with an error: column \"ship\" does not exist"
		doubt    = "it may have partly happened: "
	)
	long := strings.Repeat("y", 8<<10)
	// ID in a body is replaced by the ID of the request.
	cases := map[string]struct {
		status int
		body   string
		want   string
		next   string // what the next call says
	}{
		"500":                               {500, `{"jsonrpc":"2.0","id":ID,"error":{"code":-32603,"message":"column \"ship\" does not exist"}}`, answered, "done by s1"},
		"502":                               {502, `{"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"column \"ship\" does not exist"}}`, answered, "done by s1"},
		"400":                               {400, `{"jsonrpc":"2.0","id":ID,"error":{"code":-32602,"message":"column \"ship\" does not exist"}}`, answered, "done by s1"},
		"422":                               {422, `{"jsonrpc":"2.0","id":ID,"error":{"code":-32602,"message":"column \"ship\" does not exist"}}`, answered, "done by s1"},
		"404, of a method":                  {404, `{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"column \"ship\" does not exist"}}`, answered, "done by s1"},
		"404, of a session":                 {404, `{"jsonrpc":"2.0","id":ID,"error":{"code":-32001,"message":"Session not found"}}`, "done by s2", "done by s2"},
		"400, to no request":                {400, `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"Session not found"}}`, "done by s2", "done by s2"},
		"429":                               {429, `{"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"column \"ship\" does not exist"}}`, answered, "done by s1"},
		"500 with the ID as a string":       {500, `{"jsonrpc":"2.0","id":"ID","error":{"code":-32603,"message":"column \"ship\" does not exist"}}`, answered, "done by s1"},
		"500 with much data":                {500, `{"jsonrpc":"2.0","id":ID,"error":{"code":-32603,"message":"column \"ship\" does not exist","data":"` + long + `"}}`, answered, "done by s1"},
		"500 without a version":             {500, `{"id":ID,"error":{"code":-32603,"message":"column \"ship\" does not exist"}}`, answered, "done by s1"},
		"500 with an error that is text":    {500, `{"jsonrpc":"2.0","id":ID,"error":"column does not exist"}`, doubt, "done by s1"},
		"500, to another request":           {500, `{"jsonrpc":"2.0","id":4711,"error":{"code":-32603,"message":"oops"}}`, doubt, "done by s1"},
		"500, to no request":                {500, `{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"oops"}}`, doubt, "done by s1"},
		"500 that is no error":              {500, `{"jsonrpc":"2.0","id":ID}`, doubt, "done by s1"},
		"500 of a proxy, as JSON":           {500, `{"error":{"code":500,"message":"oops"}}`, doubt, "done by s1"},
		"400 without an error":              {400, `bad arguments`, "Error: the MCP server of web refused the request: it answered 400 Bad Request bad arguments\n- Nothing was done.", "done by s1"},
		"405 without an error":              {405, ``, "Error: the MCP server of web refused the request: it answered 405 Method Not Allowed\n- Nothing was done.", "done by s1"},
		"408 without an error":              {408, ``, doubt, "done by s1"},
		"401 is for the owner of the agent": {401, `{"jsonrpc":"2.0","id":ID,"error":{"code":-32000,"message":"expired"}}`, "Only the owner of the agent can correct this", "done by s1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := connect(t, &fakeHTTPServer{special: first(func(w http.ResponseWriter, _ *http.Request, q request) {
				w.Header().Set("Content-Type", "application/json; charset=utf-8")
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, strings.ReplaceAll(tc.body, "ID", string(q.ID)))
			})})
			for i, want := range []string{tc.want, tc.next} {
				if got := use(t, s, "do", `{}`).Render(); !strings.Contains(got, want) {
					t.Errorf("call %d says %s\nwant %s", i, got, want)
				}
			}
		})
	}
}

func TestAStreamIsTakenUpWhereItBroke(t *testing.T) {
	var resumed atomic.Bool
	var call request
	p := &fakeHTTPServer{special: func(w http.ResponseWriter, r *http.Request, q request) bool {
		switch {
		case q.Method == "tools/call":
			call = q
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "retry: 10\nid: one\ndata:\n\n")
			return true
		case r.Method == http.MethodGet && r.Header.Get("Last-Event-ID") == "one":
			resumed.Store(r.Header.Get("Mcp-Protocol-Version") == legacy && r.Header.Get("Mcp-Session-Id") != "")
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "id: two\ndata: "+answerTo(call, `{"content":[{"type":"text","text":"resumed"}]}`)+"\n\n")
			return true
		}
		return false
	}}
	s, _ := connect(t, p)
	if got := use(t, s, "do", `{}`).Render(); got != "resumed" || !resumed.Load() {
		t.Errorf("got %s, resumed %v", got, resumed.Load())
	}
}

func TestAServerThatComesUpLate(t *testing.T) {
	var n atomic.Int32
	s, _ := connect(t, &fakeHTTPServer{special: func(w http.ResponseWriter, _ *http.Request, _ request) bool {
		if n.Add(1) < 4 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return true
		}
		return false
	}})
	has(t, use(t, s, "do", `{}`).Render(), "done by ")
}

// closedPort is an address that refuses connections. Systems assign no port below
// 1024 on their own.
const closedPort = "127.0.0.1:1"

func TestAServerThatIsGoneAndComesBack(t *testing.T) {
	var isGone atomic.Bool
	s, _ := connect(t, &fakeHTTPServer{}, func(o *Options) {
		o.ConnectTimeout = 3 * time.Second // of which the first call uses all
		transport := o.Client.Transport.(*http.Transport)
		transport.DisableKeepAlives = true
		dial := transport.DialContext
		transport.DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
			if isGone.Load() {
				return (&net.Dialer{}).DialContext(ctx, network, closedPort)
			}
			return dial(ctx, network, addr)
		}
	})
	isGone.Store(true)
	ctx, report := callreport.New(t.Context())
	result, err := named(t, s, "do").Call(ctx, tool.Call{Args: json.RawMessage(`{}`), Emit: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	has(t, result.Render(), "Error: the MCP server of web cannot be reached: ", "- Nothing was done.")
	has(t, report.Unreachable(), "dial 127.0.0.1:", "connection refused")
	isGone.Store(false)
	has(t, use(t, s, "do", `{}`).Render(), "done by s2")
}

func TestWhereAToolsetMayNotLead(t *testing.T) {
	for url, want := range map[string]string{
		"http://127.0.0.1:8080/mcp":          "may not be reached",
		"http://169.254.169.254/latest":      "may not be reached",
		"http://localhost:1/":                "is the runner itself",
		"http://user:secret@api.example/mcp": "put them into a Secret",
		"ftp://api.example/mcp":              "http or https URL",
	} {
		_, err := Connect(t.Context(), Options{Toolset: remoteAt(url), ConnectTimeout: 10 * time.Second})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", url, err)
		}
		if err != nil && strings.Contains(err.Error(), "secret@") {
			t.Errorf("the error tells the password: %v", err)
		}
	}
}

func TestCheck(t *testing.T) {
	cases := map[string]struct {
		change func(*task.HTTPServer)
		want   string
	}{
		"all in order":              {func(*task.HTTPServer) {}, ""},
		"a URL that is none":        {func(h *task.HTTPServer) { h.URL = "api.test" }, `http.url: "api.test" must be an http or https URL`},
		"a header of the protocol":  {func(h *task.HTTPServer) { h.Headers = map[string]string{"mcp-session-id": "x"} }, "http.headers[mcp-session-id]: is set by the runner itself; remove it"},
		"a header of two lines":     {func(h *task.HTTPServer) { h.Headers = map[string]string{"X-A": "a\r\nb"} }, "http.headers[X-A]: has a line end"},
		"tokens of the machine":     {func(h *task.HTTPServer) { h.Auth = &task.Auth{Type: task.AuthOAuth, TokenURL: "http://localhost/"} }, "http.auth.oauthClientCredentials.tokenURL: "},
		"credentials in the length": {func(h *task.HTTPServer) { h.Auth = &task.Auth{Type: task.AuthHeader, Header: "content-length"} }, "http.auth.header.name: "},
	}
	for name, tc := range cases {
		ts := remoteAt("https://api.test/mcp")
		tc.change(ts.HTTP)
		if err := Check(ts); (err == nil) != (tc.want == "") || err != nil && !strings.HasPrefix(err.Error(), tc.want) {
			t.Errorf("%s: Check() = %v, want %s", name, err, tc.want)
		}
	}
	if err := Check(stdio()); err != nil {
		t.Errorf("Check() of a program = %v", err)
	}
}

func TestCredentialsAreShownAndReadAgain(t *testing.T) {
	var key atomic.Value
	key.Store("old")
	p := &fakeHTTPServer{special: func(w http.ResponseWriter, r *http.Request, _ request) bool {
		if r.Header.Get("Authorization") != "Bearer new" {
			key.Store("new") // as if it were rotated just now
			w.WriteHeader(http.StatusUnauthorized)
			return true
		}
		return false
	}}
	s, _ := connect(t, p, func(o *Options) {
		o.Toolset.HTTP.Auth = &task.Auth{Type: task.AuthBearer, Secret: "github", Key: "token"}
		o.Key = func(k task.SecretKey) (string, error) {
			if k != (task.SecretKey{Secret: "github", Key: "token"}) {
				return "", errors.New("another key")
			}
			return key.Load().(string), nil
		}
	})
	has(t, use(t, s, "do", `{}`).Render(), "done by ")
}

func TestRefusedCredentialsNameTheField(t *testing.T) {
	cases := map[string]struct {
		status int
		auth   *task.Auth
		want   string
	}{
		"no credentials": {401, nil, "the MCP server refused access: it answered 401 Unauthorized. Set spec.http.auth to credentials that the server accepts"},
		"a wrong token":  {401, &task.Auth{Type: task.AuthBearer, Secret: "github"}, "the MCP server refused access: it answered 401 Unauthorized. Check Secret github, key api-key (spec.http.auth)"},
		"few rights":     {403, &task.Auth{Type: task.AuthBasic, Secret: "github"}, "the MCP server refused access: it answered 403 Forbidden. Check the rights of the credentials in Secret github, key username and password (spec.http.auth)"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(tc.status) }))
			defer web.Close()
			ts := remoteAt(aliased(web.URL))
			ts.HTTP.Auth = tc.auth
			_, err := Connect(t.Context(), Options{Toolset: ts, Client: local(web), Key: func(task.SecretKey) (string, error) { return "k-123456789", nil }})
			unavailable, is := errors.AsType[*UnavailableError](err)
			if !is || err.Error() != tc.want || unavailable.Field != "spec.http.auth" {
				t.Errorf("Connect() = %v, want %s", err, tc.want)
			}
		})
	}
}
