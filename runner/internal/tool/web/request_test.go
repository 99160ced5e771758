package web

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

var toolCall = tool.Call{ID: "s1c1", Emit: func(string) {}}

func TestMethods(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("X-Internal", "hidden")
		w.Header().Set("Set-Cookie", "session=hidden")
		w.Header().Set("ETag", `"1"`)
		w.Header().Del("Date")
		fmt.Fprintf(w, "%s %s type=%q key=%q agent=%q", r.Method, body, r.Header.Get("Content-Type"), r.Header.Get("Idempotency-Key"), r.UserAgent())
	})
	to := request(t, Options{Allow: here, RunUID: "uid"})
	cases := map[string]struct {
		method, body, want string
		effect             tool.Effect
	}{
		"get":    {"GET", "", `GET  type="" key="" agent="Deckhand"`, tool.ReadOnly},
		"head":   {"HEAD", "", "", tool.ReadOnly},
		"post":   {"POST", `{"a":1}`, `POST {"a":1} type="application/json" key="uid/s1c1" agent="Deckhand"`, tool.Once},
		"put":    {"PUT", "plain", `PUT plain type="text/plain; charset=utf-8" key="uid/s1c1" agent="Deckhand"`, tool.Idempotent},
		"patch":  {"PATCH", "[1]", `PATCH [1] type="application/json" key="uid/s1c1" agent="Deckhand"`, tool.Once},
		"delete": {"DELETE", "", `DELETE  type="" key="uid/s1c1" agent="Deckhand"`, tool.Idempotent},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			args := map[string]any{"method": tc.method, "url": s.URL, "body": tc.body}
			got := call(t, to, args).Render()
			has(t, got, "HTTP 200 OK\n", "Etag: \"1\"\n", tc.want)
			hasNot(t, got, "hidden", "Error")
			raw, err := json.Marshal(args)
			if err != nil {
				t.Fatal(err)
			}
			if e := to.EffectOf(raw); e != tc.effect {
				t.Errorf("EffectOf(%s) = %s, want %s", tc.method, e, tc.effect)
			}
		})
	}
	if e := to.EffectOf(json.RawMessage(`nonsense`)); e != tool.Once {
		t.Errorf("EffectOf(nonsense) = %s, want Once", e)
	}
	if got := to.Spec; got.Effect != tool.Once || got.Concurrency != tool.Parallel || got.Name != task.BuiltinHTTPRequest {
		t.Errorf("Spec() = %+v", got)
	}
	want := "HTTP 200 OK\nContent-Length: 36\nContent-Type: text/plain\nEtag: \"1\"\n\n" + cases["get"].want
	got := call(t, to, map[string]any{"method": "GET", "url": s.URL})
	lines := strings.Split(got.Text, "\n")
	lines = append(lines[:3], lines[4:]...) // without the date
	if diff := cmp.Diff(want, strings.Join(lines, "\n")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if want := "GET " + strings.TrimPrefix(s.URL, "http://") + ": 200 OK, 36 bytes"; got.Summary != want {
		t.Errorf("Summary = %q, want %q", got.Summary, want)
	}
}

func TestAnErrorStatusIsAFailure(t *testing.T) {
	status := 0
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) })
	to := request(t, Options{Allow: here})
	for code, failed := range map[int]bool{200: false, 204: false, 304: false, 400: true, 404: true, 503: true} {
		status = code
		if got := call(t, to, map[string]any{"method": "GET", "url": s.URL}); got.Failed != failed {
			t.Errorf("status %d: failed %t, want %t", code, got.Failed, failed)
		}
	}
}

func TestHeaders(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Header, r.Host) })
	to := request(t, Options{Allow: here, RunUID: "uid"})
	cases := map[string]struct {
		headers map[string]string
		want    string
	}{
		"any":                      {map[string]string{"x-a": " b "}, "X-A:[b]"},
		"credentials":              {map[string]string{"Authorization": "Bearer x"}, "Authorization:[Bearer x]"},
		"a key of the model's own": {map[string]string{"idempotency-key": "mine"}, "Idempotency-Key:[mine]"},
		"those of the tool":        {map[string]string{"user-agent": "me", "accept-encoding": "br"}, "[not sent, because the tool sets it itself: Accept-Encoding, User-Agent]"},
		"the host":                 {map[string]string{"host": "internal"}, "cannot be requested: the header Host cannot be set"},
		"a line end":               {map[string]string{"a": "b\r\nHost: c"}, "line end or a control character"},
		"no name":                  {map[string]string{"a b": "c"}, `"a b" is no name of a header`},
		"an upgrade":               {map[string]string{"Upgrade": "websocket"}, "the header Upgrade cannot be set"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := call(t, to, map[string]any{"method": "POST", "url": s.URL, "headers": tc.headers}).Render()
			has(t, got, tc.want)
			hasNot(t, got, "Accept-Encoding:[br]", "User-Agent:[me]")
		})
	}
}

func TestBodies(t *testing.T) {
	cases := map[string]struct {
		media, body string
		want, not   string
	}{
		"JSON as it is":                 {"application/json", `{"a": 1}`, "\n\n{\"a\": 1}", "["},
		"a kind of JSON":                {"application/problem+json", `{}`, "\n\n{}", "["},
		"HTML as it is":                 {"text/html", "<b>x</b>", "[HTML: Browse shows the same page as text]\n\n<b>x</b>", ""},
		"another charset":               {"text/plain; charset=iso-8859-1", "caf\xe9", "\n\ncafé", ""},
		"UTF-8 that nobody announced":   {"text/plain", "café", "\n\ncafé", ""},
		"a charset that nobody told":    {"text/plain", "caf\xe9", "\n\ncafé", ""},
		"a charset in the page":         {"text/html", "<meta charset=shift_jis>\x83e\x83X\x83g", "テスト", ""},
		"UTF-16":                        {"text/plain; charset=utf-16le", "h\x00i\x00", "\n\nhi", ""},
		"a mark of the byte order":      {"text/plain", "\xef\xbb\xbfhi", "\n\nhi", "\ufeff"},
		"a text without a type":         {"", "hello", "\n\nhello", ""},
		"text of a type nobody knows":   {"application/x-thing", "hello", "\n\nhello", ""},
		"a picture":                     {"image/png", "\x89PNG\r\n\x1a\n", "[the body is not shown: it is no text, but image/png, 8 bytes]", "PNG"},
		"a picture that is text":        {"image/svg+xml", "<svg/>", "\n\n<svg/>", ""},
		"a PDF":                         {"application/pdf", "%PDF-1.4 hello", "it is no text, but application/pdf", "hello"},
		"a PDF that nobody announced":   {"application/octet-stream", "%PDF-1.4 hello", "it is no text, but application/pdf", "hello"},
		"bytes":                         {"application/octet-stream", "\x00\x01\x02hello", "it is no text, but application/octet-stream, 8 bytes", "hello"},
		"bytes that are called a text":  {"text/plain", "a\x00b hello", "it is no text, but text/plain", "hello"},
		"a type that is nonsense":       {";;;", "hello", "\n\nhello", ""},
		"nothing":                       {"text/plain", "", "HTTP 200 OK", "[the body"},
		"compressed as nobody asked":    {"text/plain", "hello", "it is no text, but text/plain compressed as br", "hello"},
		"bytes that are no characters":  {"text/plain; charset=utf-8", "a\xffb", "a\ufffdb", ""},
		"an unknown charset, but UTF-8": {"text/plain; charset=nonsense", "café", "café", ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Content-Type"] = []string{tc.media}
				w.Header()["Date"] = nil
				if strings.HasPrefix(name, "compressed") {
					w.Header().Set("Content-Encoding", "br")
				}
				if tc.media == "" {
					w.Header()["Content-Type"] = nil
				}
				io.WriteString(w, tc.body)
			})
			got := get(t, Options{Allow: here}, s.URL)
			has(t, got, tc.want)
			if tc.not != "" {
				hasNot(t, got, tc.not)
			}
		})
	}
}

// endless writes until nobody reads any more.
func endless(w io.Writer) {
	zeros := bytes.Repeat([]byte("0"), 64<<10)
	for {
		if _, err := w.Write(zeros); err != nil {
			return
		}
	}
}

// limits sets n headers that are shown.
func limits(w http.ResponseWriter, n int) {
	for i := range n {
		w.Header().Set(fmt.Sprintf("X-Ratelimit-%d", i), strings.Repeat("x", 150))
	}
}

// What a server sends without end is read as far as its bound, and costs no more
// memory than that.
func TestBoundedAnswers(t *testing.T) {
	var zipped bytes.Buffer
	z, _ := gzip.NewWriterLevel(&zipped, gzip.BestSpeed)
	z.Write(bytes.Repeat([]byte("0"), 32<<20))
	z.Close()
	cases := map[string]struct {
		serve http.HandlerFunc
		want  string
	}{
		"a large body whose size is known": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "2147483648")
			endless(w)
		}, "[cut: the first 1024 KiB of 2048 MiB]"},
		"a body without end": {func(w http.ResponseWriter, _ *http.Request) { endless(w) }, "[cut: the first 1024 KiB; there is more]"},
		"a bomb": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(zipped.Bytes())
		}, "[cut: the first 1024 KiB; there is more]"},
		"headers without end": {func(w http.ResponseWriter, _ *http.Request) { limits(w, 10_000) }, "server response headers exceeded"},
		"many headers":        {func(w http.ResponseWriter, _ *http.Request) { limits(w, 300) }, "HTTP 200 OK"},
		"a body that breaks off": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "beginning")
		}, "beginning\n[after 9 bytes the rest did not come: unexpected EOF]"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := serve(t, tc.serve)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got := get(t, Options{Allow: here}, s.URL)
			runtime.ReadMemStats(&after)
			has(t, got, tc.want)
			if len(got) > maxBody+(16<<10) {
				t.Errorf("the result has %d bytes", len(got))
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 24<<20 {
				t.Errorf("allocated %d MiB", used>>20)
			}
		})
	}
}

// A request that changes something is sent once, even though it has a key: who
// does not answer may have done it.
func TestARequestIsSentOnce(t *testing.T) {
	var seen atomic.Int32
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if seen.Add(1) == 1 {
			return
		}
		c, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			c.Close()
		}
	})
	to := request(t, Options{Allow: here, RunUID: "uid"})
	args := map[string]any{"method": "POST", "url": s.URL, "body": "x"}
	call(t, to, args)
	has(t, call(t, to, args).Render(), "Error: ", "cannot be reached: EOF")
	if n := seen.Load(); n != 2 {
		t.Errorf("two calls were %d requests", n)
	}
}

// inMemory is a server without a network, for what takes time.
func inMemory(t *testing.T, h http.HandlerFunc) Options {
	t.Helper()
	l := &pipes{accept: make(chan net.Conn), done: make(chan struct{})}
	s := &http.Server{Handler: h}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	return Options{dial: func(context.Context, string, string) (net.Conn, error) {
		toolHeaders, theirs := net.Pipe()
		l.accept <- theirs
		return toolHeaders, nil
	}}
}

type pipes struct {
	accept chan net.Conn
	done   chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accept:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error { close(p.done); return nil }
func (*pipes) Addr() net.Addr { return &net.TCPAddr{} }

func TestSlowServers(t *testing.T) {
	body := func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "beginning")
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	never := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	cases := map[string]struct {
		serve   http.HandlerFunc
		seconds int
		want    string
		took    time.Duration
	}{
		"that answer never":              {never, 0, "did not answer in time\n- Ask for more time with timeoutSeconds", 30 * time.Second},
		"that answer never, with less":   {never, 5, "did not answer in time", 5 * time.Second},
		"that answer never, with more":   {never, 1 << 40, "did not answer in time", maxTimeout},
		"whose body takes long":          {body, 0, "HTTP 200 OK", 30 * time.Second},
		"whose body takes long, in full": {body, 7, "beginning\n[after 9 bytes the rest did not come in time]", 7 * time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := inMemory(t, tc.serve)
				start := time.Now()
				got := call(t, request(t, o), map[string]any{"method": "GET", "url": "http://slow.example", "timeoutSeconds": tc.seconds}).Render()
				has(t, got, tc.want)
				if took := time.Since(start); took != tc.took {
					t.Errorf("it took %s, want %s", took, tc.took)
				}
			})
		})
	}
}

// The end of the call's own context is for the loop to judge.
func TestACallThatIsStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := inMemory(t, func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
		stopped := errors.New("stopped")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(time.Second, func() { cancel(stopped) })
		for _, to := range []tool.Tool{request(t, o), browse(t, o)} {
			args := `{"method":"GET","url":"http://slow.example"}`
			if to.Name == task.BuiltinBrowse {
				args = `{"url":"http://slow.example"}`
			}
			if got, err := to.Call(ctx, tool.Call{Args: json.RawMessage(args)}); !errors.Is(err, stopped) {
				t.Errorf("Call() = %+v, %v, want the cause", got, err)
			}
		}
	})
}
