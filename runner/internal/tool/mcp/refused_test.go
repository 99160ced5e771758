package mcp

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/deckhand-dev/deckhand/runner/task"
)

// secretOf reads the keys of the Secret s.
func secretOf(values map[string]string) func(task.SecretKey) (string, error) {
	return func(k task.SecretKey) (string, error) { return values[k.Key], nil }
}

// Client credentials that are refused are shown in one attempt, and the error says
// what to check.
func TestRefusedClientCredentialsAreTriedOnce(t *testing.T) {
	cases := map[string]struct {
		status int
		code   string
		asked  int32
		want   string
	}{
		"a wrong secret":    {http.StatusUnauthorized, "invalid_client", 2, "Check the keys client-id and client-secret of the Secret s"},
		"an unknown grant":  {http.StatusBadRequest, "unsupported_grant_type", 1, "does not offer the grant type client_credentials"},
		"a forbidden grant": {http.StatusBadRequest, "unauthorized_client", 1, "Allow the grant type client_credentials"},
		"an unknown scope":  {http.StatusBadRequest, "invalid_scope", 1, "Check auth.oauthClientCredentials.scopes of the Toolset"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/token" {
					asked.Add(1)
					w.WriteHeader(tc.status)
					fmt.Fprintf(w, `{"error":%q}`, tc.code)
				}
			}))
			t.Cleanup(web.Close)
			ts := remoteAt(aliased(web.URL))
			ts.HTTP.Auth = &task.Auth{Type: task.AuthOAuth, Secret: "s", TokenURL: aliased(web.URL) + "/token", Scopes: []string{"a"}}
			_, err := Connect(t.Context(), Options{
				Toolset: ts, Client: local(web), ConnectTimeout: 5 * time.Second,
				Key: secretOf(map[string]string{"client-id": "me", "client-secret": "geheim"}),
			})
			var unavailable *UnavailableError
			if !errors.As(err, &unavailable) || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), tc.code) {
				t.Errorf("error %v, want %q", err, tc.want)
			}
			if got := asked.Load(); got != tc.asked {
				t.Errorf("a token was asked for %d times, want %d", got, tc.asked)
			}
		})
	}
}

// Credentials that are refused in a call say that nothing was done.
func TestRefusedCredentialsInACallAreNoLostConnection(t *testing.T) {
	p := &fakeHTTPServer{}
	refuse := atomic.Bool{}
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path != "/token":
			p.ServeHTTP(w, r)
		case refuse.Load():
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = io.WriteString(w, `{"error":"invalid_client"}`)
		default:
			_, _ = io.WriteString(w, `{"access_token":"t","expires_in":2}`)
		}
	})
	now := time.Now()
	s, _ := connect(t, h, func(o *Options) {
		o.Toolset.HTTP.Auth = &task.Auth{Type: task.AuthOAuth, Secret: "s", TokenURL: o.Toolset.HTTP.URL + "/token"}
		o.Key = secretOf(map[string]string{"client-id": "me", "client-secret": "geheim"})
		o.Now = func() time.Time { return now }
	})
	refuse.Store(true)
	now = now.Add(time.Hour)
	got := use(t, s, "do", `{}`).Render()
	has(t, got, "was not asked: getting a token", "invalid_client", "Check the keys client-id and client-secret of the Secret s", "Nothing was done.")
}

// A tool that must be called as a task is not offered to the model, and the log
// and a misconfiguration say why.
func TestToolsThatMustBeTasksAreNotOffered(t *testing.T) {
	p := &fakeHTTPServer{special: func(w http.ResponseWriter, _ *http.Request, q request) bool {
		if q.Method != "tools/list" {
			return false
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answerTo(q, `{"tools":[
			{"name":"render","inputSchema":{"type":"object"},"execution":{"taskSupport":"required"}},
			{"name":"index","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"}},
			{"name":"find","inputSchema":{"type":"object"},"execution":{"taskSupport":"forbidden"}},
			{"name":"do","inputSchema":{"type":"object"},"execution":"odd"}]}`))
		return true
	}}
	var told []string
	s, _ := connect(t, p, func(o *Options) { o.Log = func(text string) { told = append(told, text) } })
	tools, err := s.Tools(nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, made := range tools {
		names = append(names, made.Name)
	}
	if got := strings.Join(names, " "); got != "web__do web__find web__index" {
		t.Errorf("offered %s", got)
	}
	if got := strings.Join(told, "\n"); strings.Count(got, "must be called as a task") != 1 || !strings.Contains(got, `"render"`) {
		t.Errorf("told %q", got)
	}
	has(t, use(t, s, "index", `{}`).Render(), "done by")
	_, err = s.Tools([]string{"render", "find"}, nil)
	var missing *NotOfferedError
	if !errors.As(err, &missing) || !strings.Contains(err.Error(), "render must be called as a task") {
		t.Errorf("allowed by name: %v", err)
	}
}

// A server of the transport before Streamable HTTP is told apart at once.
func TestTheOldTransportIsNamed(t *testing.T) {
	strict := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, ": hello\n\nevent: endpoint\ndata: /messages?session=1\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	for name, old := range map[string]http.Handler{
		"that refuses POST":   strict,
		"of the official SDK": sdk.NewSSEHandler(func(*http.Request) *sdk.Server { return library() }, &sdk.SSEOptions{DisableLocalhostProtection: true}),
	} {
		t.Run(name, func(t *testing.T) {
			var posts atomic.Int32
			web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					posts.Add(1)
				}
				old.ServeHTTP(w, r)
			}))
			t.Cleanup(web.Close)
			t.Cleanup(web.CloseClientConnections)
			_, err := Connect(t.Context(), Options{Toolset: remoteAt(aliased(web.URL)), Client: local(web), ConnectTimeout: 5 * time.Second})
			var unavailable *UnavailableError
			if !errors.As(err, &unavailable) || !strings.Contains(err.Error(), "HTTP+SSE transport of 2024-11-05, which is not supported") {
				t.Errorf("got %v", err)
			}
			if n := posts.Load(); n > 3 {
				t.Errorf("it was asked %d times", n)
			}
		})
	}
}

// Where nothing but a page is there, that is what is said.
func TestAServerThatIsNoneIsNotTakenForTheOldTransport(t *testing.T) {
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	_, err := Connect(t.Context(), Options{Toolset: remoteAt(aliased(web.URL)), Client: local(web), ConnectTimeout: 5 * time.Second})
	if err == nil || strings.Contains(err.Error(), "2024-11-05") {
		t.Errorf("got %v", err)
	}
}

// A wrong path is the most frequent mistake in a URL, and a library says of it: Not Found.
func TestAWrongPathIsNamed(t *testing.T) {
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		path   string
		want   string
	}{
		"nothing there":   {http.NotFound, "", "it answered 404 Not Found: there is no MCP server at the path /. Correct the path of spec.http.url of the Toolset, which is often /mcp"},
		"another path":    {http.NotFound, "/v1/tools", "there is no MCP server at the path /v1/tools."},
		"no POST allowed": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusMethodNotAllowed) }, "/a", "it answered 405 Method Not Allowed: there is no MCP server at the path /a."},
		"a web page": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = io.WriteString(w, "<html>Welcome</html>")
		}, "", "it answered with a web page: there is no MCP server at the path /."},
	} {
		web := httptest.NewServer(tc.answer)
		_, err := Connect(t.Context(), Options{Toolset: remoteAt(aliased(web.URL) + tc.path), Client: local(web), ConnectTimeout: 5 * time.Second})
		if unavailable, is := errors.AsType[*UnavailableError](err); !is || unavailable.Field != "spec.http.url" || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %s", name, err, tc.want)
		}
		web.Close()
	}
}

// A server that fails at its path is none whose path is wrong.
func TestAServerThatFailsHasTheRightPath(t *testing.T) {
	for _, status := range []int{http.StatusInternalServerError, http.StatusUnauthorized, http.StatusBadRequest} {
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
		_, err := Connect(t.Context(), Options{Toolset: remoteAt(aliased(web.URL)), Client: local(web), ConnectTimeout: 5 * time.Second})
		if err == nil || strings.Contains(err.Error(), "/mcp") {
			t.Errorf("%d: got %v", status, err)
		}
		web.Close()
	}
}
