package request

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/internal/shared/weburl"
	"github.com/deckhand-dev/deckhand/runner/internal/callreport"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/facts"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
	"github.com/deckhand-dev/deckhand/runner/tool/tooltest"
)

// one is a Toolset of one tool, whose arguments are x, which is there, and y,
// which need not be.
func one(t task.RequestTool) task.Toolset {
	t.Name, t.Description = "do", "Does it."
	if t.Input == nil {
		t.Input = json.RawMessage(`{"type":"object","properties":{"x":{"type":"string"},"y":{"type":"string"},"n":{"type":"integer"},
			"list":{"type":"array","items":{"type":"string"}},"o":{"type":"object","properties":{"p":{"type":"string"}},"required":["p"]}},"required":["x"]}`)
	}
	return task.Toolset{Name: "tracker", Requests: &task.Requests{BaseURL: "http://api.test/v1/", Tools: []task.RequestTool{t}}}
}

// sent is what a server saw.
type sent struct {
	line, body string
	header     http.Header
}

// serve answers all of a Toolset's requests by a handler.
func serve(t *testing.T, h http.Handler) *http.Client {
	t.Helper()
	web := httptest.NewServer(h)
	t.Cleanup(web.Close)
	var d net.Dialer
	return &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return d.DialContext(ctx, network, web.Listener.Addr().String())
	}}}
}

// send calls the tool of a Toolset and returns what was sent.
func send(t *testing.T, ts task.Toolset, args string) (tool.Result, *sent) {
	t.Helper()
	var got *sent
	client := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = &sent{r.Method + " " + r.RequestURI, string(body), r.Header}
		_, _ = io.WriteString(w, "ok")
	}))
	return call(t, ts, Options{Client: client, RunUID: "uid"}, args), got
}

func call(t *testing.T, ts task.Toolset, o Options, args string) tool.Result {
	t.Helper()
	tools, err := New(ts, o)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	result, err := tools[0].Call(t.Context(), tool.Call{ID: "c1", Args: json.RawMessage(args), Emit: func(string) {}})
	if err != nil {
		t.Fatalf("Call: %v", err)
	}
	return result
}

func TestWhereValuesGo(t *testing.T) {
	cases := map[string]struct {
		tool             task.RequestTool
		args, line, body string
	}{
		"a path":                       {task.RequestTool{Method: "GET", Path: "/issues/${{ input.x }}"}, `{"x":"7"}`, "GET /v1/issues/7", ""},
		"a part of a segment":          {task.RequestTool{Method: "GET", Path: "/issues/${{ input.x }}.json"}, `{"x":"7"}`, "GET /v1/issues/7.json", ""},
		"a path that stays one":        {task.RequestTool{Method: "GET", Path: "/a/${{ input.x }}/b"}, `{"x":"b/c/admin?x=1#y;z"}`, "GET /v1/a/b%2Fc%2Fadmin%3Fx=1%23y%3Bz/b", ""},
		"encoded already":              {task.RequestTool{Method: "GET", Path: "/a/${{ input.x }}"}, `{"x":"%2e%2f"}`, "GET /v1/a/%252e%252f", ""},
		"dots that lead nowhere":       {task.RequestTool{Method: "GET", Path: "/a/${{ input.x }}"}, `{"x":"v1..v2/.../b..c"}`, "GET /v1/a/v1..v2%2F...%2Fb..c", ""},
		"a parameter that leads up":    {task.RequestTool{Method: "GET", Path: "/a", Query: map[string]string{"q": "${{ input.x }}"}}, `{"x":"../..#&b=c"}`, "GET /v1/a?q=..%2F..%23%26b%3Dc", ""},
		"what looks like a place":      {task.RequestTool{Method: "GET", Path: "/a/${{ input.x }}"}, `{"x":"${{ input.y }}","y":"secret"}`, "GET /v1/a/$%7B%7B%20input.y%20%7D%7D", ""},
		"a line end":                   {task.RequestTool{Method: "GET", Path: "/a/${{ input.x }}"}, `{"x":"b HTTP/1.1\r\nHost: evil"}`, "GET /v1/a/b%20HTTP%2F1.1%0D%0AHost:%20evil", ""},
		"not ASCII":                    {task.RequestTool{Method: "GET", Path: "/a/${{ input.x }}"}, `{"x":"ä/日"}`, "GET /v1/a/%C3%A4%2F%E6%97%A5", ""},
		"a number":                     {task.RequestTool{Method: "GET", Path: "/a/${{ input.n }}", Input: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`)}, `{"n":9007199254740993}`, "GET /v1/a/9007199254740993", ""},
		"a path of the author's":       {task.RequestTool{Method: "GET", Path: "/a%20b/c"}, `{"x":""}`, "GET /v1/a%20b/c", ""},
		"a parameter":                  {task.RequestTool{Method: "GET", Path: "/a", Query: map[string]string{"q": "${{ input.x }}"}}, `{"x":"a b&c=d#e"}`, "GET /v1/a?q=a+b%26c%3Dd%23e", ""},
		"one that is not given":        {task.RequestTool{Method: "GET", Path: "/a", Query: map[string]string{"q": "${{ input.x }}", "r": "${{ input.y }}"}}, `{"x":"1"}`, "GET /v1/a?q=1", ""},
		"one that is empty":            {task.RequestTool{Method: "GET", Path: "/a", Query: map[string]string{"q": "${{ input.x }}"}}, `{"x":""}`, "GET /v1/a?q=", ""},
		"several of one name":          {task.RequestTool{Method: "GET", Path: "/a", Query: map[string]string{"q": "${{ input.list }}"}}, `{"x":"","list":["a","b"]}`, "GET /v1/a?q=a&q=b", ""},
		"a part of a parameter":        {task.RequestTool{Method: "GET", Path: "/a", Query: map[string]string{"q": "repo:${{ input.x }} is:open"}}, `{"x":"a"}`, "GET /v1/a?q=repo%3Aa+is%3Aopen", ""},
		"a member":                     {task.RequestTool{Method: "POST", Path: "/a", Body: json.RawMessage(`{"title":"${{ input.x }}"}`)}, `{"x":"\"},\"admin\":true"}`, "POST /v1/a", `{"title":"\"},\"admin\":true"}`},
		"members with their types":     {task.RequestTool{Method: "POST", Path: "/a", Body: json.RawMessage(`{"b":[1,"${{ input.n }}"],"a":{"l":"${{ input.list }}","o":"${{ input.o }}"}}`)}, `{"x":"","n":1.0,"list":["<a>"],"o":{"p":"q"}}`, "POST /v1/a", `{"b":[1,1.0],"a":{"l":["<a>"],"o":{"p":"q"}}}`},
		"members that are not given":   {task.RequestTool{Method: "PATCH", Path: "/a", Body: json.RawMessage(`{"t":"${{ input.y }}","l":["${{ input.y }}",null,true],"e":{"y":"${{ input.y }}"}}`)}, `{"x":""}`, "PATCH /v1/a", `{"l":[null,true],"e":{}}`},
		"a text with a value in it":    {task.RequestTool{Method: "PUT", Path: "/a", Body: json.RawMessage(`{"t":"for <${{ input.x }}>"}`)}, `{"x":"\"\n"}`, "PUT /v1/a", `{"t":"for <\"\n>"}`},
		"a literal":                    {task.RequestTool{Method: "POST", Path: "/a", Body: json.RawMessage(`{"t":"$${{ input.x }}"}`)}, `{"x":""}`, "POST /v1/a", `{"t":"${{ input.x }}"}`},
		"a body that is one value":     {task.RequestTool{Method: "POST", Path: "/a", Body: json.RawMessage(`"${{ input.o }}"`)}, `{"x":"","o":{"p":"q"}}`, "POST /v1/a", `{"p":"q"}`},
		"a body that is not given":     {task.RequestTool{Method: "POST", Path: "/a", Body: json.RawMessage(`"${{ input.o }}"`)}, `{"x":""}`, "POST /v1/a", ``},
		"nothing":                      {task.RequestTool{Method: "DELETE", Path: "/a/", Input: json.RawMessage(`null`)}, `{}`, "DELETE /v1/a/", ``},
		"a path that is the root":      {task.RequestTool{Method: "GET", Path: "/"}, `{"x":""}`, "GET /v1/", ``},
		"a default in a path":          {task.RequestTool{Method: "GET", Path: "/a/${{ input.n }}", Input: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","default":3}}}`)}, `{}`, "GET /v1/a/3", ""},
		"a default that is not used":   {task.RequestTool{Method: "GET", Path: "/a/${{ input.n }}", Input: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","default":3}}}`)}, `{"n":4}`, "GET /v1/a/4", ""},
		"a value within another value": {task.RequestTool{Method: "GET", Path: "/${{ input.o.p }}", Input: json.RawMessage(`{"type":"object","properties":{"o":{"type":"object","properties":{"p":{"type":"string"}},"required":["p"]}},"required":["o"]}`)}, `{"o":{"p":"q"}}`, "GET /v1/q", ``},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			result, got := send(t, one(tc.tool), tc.args)
			if got == nil {
				t.Fatalf("nothing was sent: %s", result.Render())
			}
			if diff := cmp.Diff([]string{tc.line, strings.ReplaceAll(tc.body, "\n", `\n`)}, []string{got.line, got.body}); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if result.Render() != "HTTP 200 OK\n\nok" {
				t.Errorf("the model reads %s", result.Render())
			}
		})
	}
}

// A policy and an approver see the values that are sent, defaults included.
func TestDefaultsAreAmongTheCanonicalArguments(t *testing.T) {
	tools, err := New(one(task.RequestTool{Method: "GET", Path: "/a/${{ input.n }}", Input: json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","default":3}}}`)}), Options{})
	if err != nil {
		t.Fatal(err)
	}
	args, refused := tools[0].CanonicalArgs(t.Context(), json.RawMessage(`{}`))
	if refused != nil || string(args) != `{"n":3}` {
		t.Errorf("Canonical() = %s, %v", args, refused)
	}
}

func TestValuesThatCannotGoThere(t *testing.T) {
	path := func(p string) task.RequestTool { return task.RequestTool{Method: "GET", Path: p} }
	cases := map[string]struct {
		tool       task.RequestTool
		args, want string
	}{
		"a dot":                 {path("/a/${{ input.x }}/b"), `{"x":"."}`, `the path would have "." in it, which leads elsewhere than meant; give another input.x`},
		"two dots":              {path("/a/${{ input.x }}"), `{"x":".."}`, `the path would have ".." in it`},
		"two dots of two":       {path("/a/${{ input.x }}${{ input.x }}"), `{"x":"."}`, `the path would have ".." in it`},
		"two dots, one encoded": {path("/a/%2e${{ input.x }}"), `{"x":"."}`, `the path would have ".." in it`},
		"nothing":               {path("/a/${{ input.x }}/b"), `{"x":""}`, `the path would have "" in it`},
		"a list": {
			task.RequestTool{Method: "GET", Path: "/${{ input.l }}", Input: json.RawMessage(`{"type":"object","properties":{"l":{"type":"array","items":{"type":"string"}}},"required":["l"]}`)},
			`{"l":["a"]}`, "input.l must be a string, a number or a boolean here",
		},
		"another type":   {path("/a/${{ input.x }}"), `{"x":1}`, "Invalid arguments for tracker__do: `x` must be a string; got an integer."},
		"what is needed": {path("/a/${{ input.x }}"), `{}`, "Invalid arguments for tracker__do: `x` is missing"},
		"too much": {
			task.RequestTool{Method: "POST", Path: "/a", Body: json.RawMessage(`["${{ input.x }}","${{ input.x }}"]`)},
			`{"x":"` + strings.Repeat("x", 600<<10) + `"}`, "the body has more than 1024 KiB",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			result, got := send(t, one(tc.tool), tc.args)
			if got != nil {
				t.Errorf("%s was sent", got.line)
			}
			if text := result.Render(); !strings.Contains(text, tc.want) {
				t.Errorf("the model reads %.500s\nwant %s", text, tc.want)
			}
		})
	}
}

// A value that leads to another path is refused before anything judges the call,
// and nothing is sent.
func TestPathValuesThatLeadUpAreRefused(t *testing.T) {
	paths := map[string]string{"/files/${{ input.x }}": "", "/files/a${{ input.x }}b/c": "/", "/files/.${{ input.x }}": ""}
	for path, around := range paths {
		for _, value := range []string{
			"..", "../admin", "a/../../admin", `..\\admin`, `a\\..\\b`, "%2e%2e", "%2E%2e%2fadmin", "a%2f..%2Fb", "%252e%252e%252fadmin", "..;/admin", "a/..",
		} {
			x := around + value + around
			if strings.HasSuffix(path, ".${{ input.x }}") {
				x = "/" + x
			}
			ts, args := one(task.RequestTool{Method: "GET", Path: path}), `{"x":"`+x+`"}`
			result, got := send(t, ts, args)
			if got != nil || !strings.Contains(result.Render(), "leads elsewhere than meant; give another input.x") {
				t.Errorf("%s with %s: sent %+v: %s", path, x, got, result.Render())
			}
			tools, err := New(ts, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if canonical, refused := tools[0].CanonicalArgs(t.Context(), json.RawMessage(args)); refused == nil || refused.Message != result.Error.Message {
				t.Errorf("%s with %s: the policy is asked about %s", path, x, canonical)
			}
			tooltest.Canonical(t, tools[0], args, `{"x":"a b"}`)
		}
	}
	if result, got := send(t, one(task.RequestTool{Method: "GET", Path: "/files/.${{ input.x }}"}), `{"x":"."}`); got != nil {
		t.Errorf("two dots of which one is the author's: %s", result.Render())
	}
}

func TestWhatGoesWithARequest(t *testing.T) {
	ts := one(task.RequestTool{Method: "POST", Path: "/a", Body: json.RawMessage(`{}`)})
	ts.Requests.Headers = map[string]string{"X-Team": "red", "Accept": "application/json"}
	_, got := send(t, ts, `{"x":""}`)
	for name, want := range map[string]string{
		"Content-Type": "application/json", "X-Team": "red", "Accept": "application/json", "User-Agent": "Deckhand", "Idempotency-Key": "uid/c1",
	} {
		if got.header.Get(name) != want {
			t.Errorf("%s is %q, want %q", name, got.header.Get(name), want)
		}
	}
	if _, got := send(t, one(task.RequestTool{Method: "GET", Path: "/a"}), `{"x":""}`); got.header.Get("Idempotency-Key") != "" {
		t.Error("what only reads has an Idempotency-Key")
	}
	ts.Requests.Headers["Content-Type"] = "application/merge-patch+json"
	if _, got := send(t, ts, `{"x":""}`); got.header.Get("Content-Type") != "application/merge-patch+json" {
		t.Errorf("the author's Content-Type is not sent, but %s", got.header.Get("Content-Type"))
	}
}

func TestRequestsCarryTheTraceContext(t *testing.T) {
	for _, traceparent := range []func(string) string{nil, func(callID string) string { return "00-" + callID }} {
		var got http.Header
		client := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header }))
		call(t, one(task.RequestTool{Method: "GET", Path: "/a"}), Options{Client: client, Traceparent: traceparent}, `{"x":""}`)
		want := ""
		if traceparent != nil {
			want = "00-c1"
		}
		if got == nil || got.Get("Traceparent") != want {
			t.Errorf("the header is %q, want %q", got.Get("Traceparent"), want)
		}
	}
}

func TestEffects(t *testing.T) {
	for method, want := range map[string]tool.Effect{
		"GET": tool.ReadOnly, "HEAD": tool.ReadOnly, "PUT": tool.Idempotent, "DELETE": tool.Idempotent, "POST": tool.Once, "PATCH": tool.Once,
	} {
		ts := one(task.RequestTool{Method: method, Path: "/a"})
		ts.TimeoutSeconds = 7
		tools, err := New(ts, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if spec := tools[0].Spec; spec.Effect != want || spec.Name != "tracker__do" || spec.Timeout.Seconds() != 7 {
			t.Errorf("%s: %+v", method, spec)
		}
	}
}

func TestAnswers(t *testing.T) {
	cases := map[string]struct {
		method  string
		handler http.HandlerFunc
		want    []string
	}{
		"JSON as it is": {"GET", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{\"a\" : 1}\n") }, []string{"HTTP 200 OK\n\n{\"a\" : 1}\n"}},
		"nothing":       {"GET", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }, []string{"HTTP 204 No Content"}},
		"a failure":     {"GET", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no such issue", http.StatusNotFound) }, []string{"Error: HTTP 404 Not Found\n\nno such issue"}},
		"a long failure": {"GET", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, strings.Repeat("x", 100<<10), http.StatusBadRequest)
		}, []string{"Error: HTTP 400 Bad Request", "[cut: the first 8 KiB; there is more]"}},
		"one after which nobody knows": {"POST", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }, []string{"Error: HTTP 500 ", partly}},
		"one about credentials":        {"GET", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, []string{"Only the owner of the agent can correct this: Set spec.requests.auth of Toolset tracker to credentials that the server accepts."}},
		"what is no text": {"GET", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "image/png")
			_, _ = w.Write([]byte{0x89, 0, 0xff})
		}, []string{"[the body is not shown: it is no text, but image/png, 3 bytes]"}},
		"a bomb": {"GET", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			for range 8 << 10 {
				if _, err := z.Write(make([]byte, 1<<10)); err != nil {
					return
				}
			}
			_ = z.Close()
		}, []string{"[the body is not shown"}},
		"more than is read": {"GET", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat("ä", maxBody)) }, []string{"[cut: the first 256 KiB; there is more]"}},
		"a redirect on the host": {"GET", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/v1/a" {
				http.Redirect(w, r, "/v2/a", http.StatusFound)
				return
			}
			_, _ = io.WriteString(w, r.URL.Path)
		}, []string{"HTTP 200 OK\n\n/v2/a"}},
		"a redirect to another": {"GET", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://evil.test/", http.StatusFound)
		}, []string{"Error: api.test was asked and answered, but the redirect to http://evil.test/ is not followed"}},
		"a redirect without an end":    {"GET", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/v1/a", http.StatusFound) }, []string{"there were more than 5"}},
		"a connection that ends":       {"POST", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, []string{"Error: api.test gave no answer: EOF", partly}},
		"the same for what only reads": {"GET", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, []string{"gave no answer", "Try it once more later."}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			text := call(t, one(task.RequestTool{Method: tc.method, Path: "/a"}), Options{Client: serve(t, tc.handler)}, `{"x":""}`).Render()
			for _, want := range tc.want {
				if !strings.Contains(text, want) {
					t.Errorf("the model reads %.600s\nwant %s", text, want)
				}
			}
			if len(text) > maxBody+1000 {
				t.Errorf("the model reads %d bytes", len(text))
			}
		})
	}
}

func TestAServerThatIsNotThere(t *testing.T) {
	client := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	}}}
	text := call(t, one(task.RequestTool{Method: "POST", Path: "/a"}), Options{Client: client}, `{"x":""}`).Render()
	if want := "Error: api.test cannot be reached: dial: connection refused\n- Nothing was done. Try it once more later."; text != want {
		t.Errorf("the model reads %s", text)
	}
}

// A Run tells its owner which Toolsets no call could reach, and what to look at.
func TestAnUnreachableEndpointIsReported(t *testing.T) {
	clients := map[string]*http.Client{
		"": serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) })),
	}
	for want, cause := range map[string]error{
		"lookup api.test: no such host": &net.DNSError{Err: "no such host", Name: "api.test", IsNotFound: true},
		"dial: connection refused":      errors.New("connection refused"),
	} {
		clients[want] = &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			return nil, &net.OpError{Op: "dial", Err: cause}
		}}}
	}
	for want, client := range clients {
		tools, err := New(one(task.RequestTool{Method: "GET", Path: "/a"}), Options{Client: client})
		if err != nil {
			t.Fatal(err)
		}
		if got := tools[0].Internal.Facts().Endpoint; got != (facts.Endpoint{Name: "toolset tracker", Field: "spec.requests.baseURL of Toolset tracker"}) {
			t.Errorf("the endpoint is %+v", got)
		}
		ctx, report := callreport.New(t.Context())
		result, err := tools[0].Call(ctx, tool.Call{Args: json.RawMessage(`{"x":""}`)})
		if err != nil || result.Error == nil || report.Unreachable() != want {
			t.Errorf("Call() = %+v, %v; unreachable: %q, want %q", result.Error, err, report.Unreachable(), want)
		}
	}
}

func TestACallEndsWithItsContext(t *testing.T) {
	why := errors.New("stopped")
	ctx, cancel := context.WithCancelCause(t.Context())
	client := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel(why)
		<-r.Context().Done()
	}))
	tools, err := New(one(task.RequestTool{Method: "GET", Path: "/a"}), Options{Client: client})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = tools[0].Call(ctx, tool.Call{Args: json.RawMessage(`{"x":""}`)}); !errors.Is(err, why) {
		t.Errorf("Call() = %v", err)
	}
}

// Whatever the values are, a request goes where the Toolset says, and has as
// many segments, parameters and members as it wrote.
func FuzzValuesStayInTheirPlaces(f *testing.F) {
	for _, seed := range []string{"a", "..", "/", "%2f", "?", "#", "\x00", "\r\n", "\\", "é", "${{ input.x }}", "//evil.test/", "@evil.test", `","b":1,"c":"`} {
		f.Add(seed)
	}
	plans, err := plansOf(one(task.RequestTool{
		Method: "POST", Path: "/a/${{ input.x }}/c", Query: map[string]string{"q": "${{ input.x }}"}, Body: json.RawMessage(`{"v":"${{ input.x }}","w":"-${{ input.x }}"}`),
	}))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, value string) {
		args, err := json.Marshal(map[string]string{"x": value})
		if err != nil {
			t.Skip()
		}
		var meant struct {
			X string `json:"x"`
		}
		_ = json.Unmarshal(args, &meant) // bytes that are no text have become some
		req, err := plans[0].bind(t.Context(), args)
		if err != nil {
			if meant.X != "" && meant.X != "." && !weburl.LeadsUp(meant.X) {
				t.Errorf("%q was refused: %v", value, err)
			}
			return
		}
		parts := strings.Split(req.URL.EscapedPath(), "/")
		if req.URL.Host != "api.test" || len(parts) != 5 || parts[1] != "v1" || parts[2] != "a" || parts[4] != "c" {
			t.Errorf("%q leads to %s", value, req.URL)
		}
		query := req.URL.Query()
		if len(query) != 1 || len(query["q"]) != 1 || query.Get("q") != meant.X {
			t.Errorf("%q makes the query %s", value, req.URL.RawQuery)
		}
		body, _ := io.ReadAll(req.Body)
		var got map[string]string
		if err := json.Unmarshal(body, &got); err != nil || len(got) != 2 || got["v"] != meant.X || got["w"] != "-"+meant.X {
			t.Errorf("%q makes the body %s", value, body)
		}
	})
}

// The API that is requested is told what the arguments say, so that they are validated however
// many they are.
func TestLargeArgumentsAreValidated(t *testing.T) {
	labels := `"l0"` + strings.Repeat(`,"l1"`, 49)
	ts := one(task.RequestTool{Method: "POST", Path: "/${{ input.repo }}", Input: json.RawMessage(`{"type":"object","required":["repo"],"properties":{"repo":{"type":"string","enum":["a","b"]},` +
		`"labels":{"type":"array","items":{"type":"string","enum":[` + labels + `]}}}}`)})
	for n, want := range map[int]string{2_000: "`repo` must be one of ", 200_000: "they cannot be validated"} {
		got, request := send(t, ts, `{"repo":"evil","labels":["l0"`+strings.Repeat(`,"l1"`, n)+`]}`)
		if request != nil || got.Error == nil || !strings.Contains(got.Error.Message, want) {
			t.Errorf("%d labels: %+v, sent %v", n, got.Error, request)
		}
	}
	if got, request := send(t, ts, `{"repo":"a","labels":["l0"`+strings.Repeat(`,"l1"`, 2_000)+`]}`); request == nil || got.Error != nil {
		t.Errorf("labels that fit: %+v", got.Error)
	}
}
