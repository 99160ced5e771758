package web

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
	"github.com/deckhand-dev/deckhand/runner/tool/tooltest"
)

func TestToolsOfTheWebHaveCanonicalArguments(t *testing.T) {
	tooltest.Canonical(t, request(t, Options{}),
		`{"method":"GET","url":"https://example.com/"}`,
		`{"url":" HTTPS://EXAMPLE.com.:443/a/%2e%2e/b?q=<a>&c=%zz#d ","method":"POST","headers":{"x-b":" 2 ","accept":"a"},"body":"<&>","timeoutSeconds":9007199254740991}`,
		`{"method":"GET","url":"http://2130706433/"}`, `{"method":"GET","url":"http://a@b/"}`, `{"method":"GET","url":""}`,
		`{"method":"GET","url":"http://a.example/","headers":{"accept":"a","Accept":"b"}}`)
	tooltest.Canonical(t, browse(t, Options{}), `{"url":"http://[::ffff:1.2.3.4]:80"}`, `{"url":"https://ä.example/ü","offset":3}`, `{"url":"ftp://a"}`)
}

// What judges a call sees one spelling of each request.
func TestCanonicalArguments(t *testing.T) {
	cases := map[string]struct{ args, want string }{
		"a URL in one spelling":     {`{"url":"HTTPS://EXAMPLE.com.:443","method":"GET"}`, `{"method":"GET","url":"https://example.com/"}`},
		"headers by their names":    {`{"method":"PUT","url":"http://a.example/","headers":{"authorization ":" x","X-A":""},"body":"b"}`, `{"method":"PUT","url":"http://a.example/","headers":{"Authorization":"x","X-A":""},"body":"b"}`},
		"a method in upper case":    {`{"method":"get","url":"http://a.example/"}`, `{"method":"GET","url":"http://a.example/"}`},
		"what is nothing, left out": {`{"method":"GET","url":"http://a.example/","headers":{},"body":"","timeoutSeconds":0}`, `{"method":"GET","url":"http://a.example/"}`},
		"a header that is twice":    {`{"method":"GET","url":"http://a.example/","headers":{"accept":"a","Accept":"b"}}`, "'http://a.example/' cannot be requested: the header Accept is given twice; give it once"},
		"a URL that is refused":     {`{"method":"GET","url":"http://0x7f.1/"}`, "'http://0x7f.1/' cannot be requested: \"0x7f.1\" is no host name: write an IPv4 address as four decimal numbers"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, refused := request(t, Options{}).CanonicalArgs(t.Context(), json.RawMessage(tc.args))
			if refused != nil {
				got = json.RawMessage(refused.Message)
			}
			if string(got) != tc.want {
				t.Errorf("Canonical() = %s\nwant %s", got, tc.want)
			}
		})
	}
}

// lines serves one connection after the other and keeps the first line and the
// Host header of each request, as they were sent.
func lines(t *testing.T) (address string, seen func() string) {
	t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	got := make(chan string, 10)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			r := bufio.NewReader(c)
			line, _ := r.ReadString('\n')
			host, _ := r.ReadString('\n')
			got <- strings.TrimSpace(line) + ", " + strings.TrimSpace(host)
			_, _ = c.Write([]byte("HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok"))
			c.Close()
		}
	}()
	return l.Addr().String(), func() string { return <-got }
}

// The request that is sent is the canonical URL, to the byte.
func TestTheCanonicalURLIsWhatIsSent(t *testing.T) {
	address, seen := lines(t)
	to := Options{Allow: here, dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, address)
	}}
	for _, written := range []string{
		"http://site.example", "HTTP://SITE.example.:80/a/./b/%2e%2e/c?q=%3c<a b>&d=%zz#e", "http://site.example//a;b%3bc%2Fd%5ce[]?[]=%41+'\"",
		"http://ｓｉｔｅ.example:0080/%7e%C3%a4ä?%C3%a4ä?/\\", "http://[::FFFF:1.2.3.4]:8080/?", "http://[2001:DB8::0:1]/@:!$&'()*+,;=",
	} {
		args, err := json.Marshal(map[string]string{"method": "GET", "url": written})
		if err != nil {
			t.Fatal(err)
		}
		canonical, refused := request(t, to).CanonicalArgs(t.Context(), args)
		if refused != nil {
			t.Fatalf("%s: %s", written, refused.Message)
		}
		var judged struct{ URL string }
		if err := json.Unmarshal(canonical, &judged); err != nil {
			t.Fatal(err)
		}
		rest := strings.TrimPrefix(judged.URL, "http://")
		host, path, _ := strings.Cut(rest, "/")
		want := fmt.Sprintf("GET /%s HTTP/1.1, Host: %s", path, host)
		for _, url := range []string{written, judged.URL} {
			for _, made := range []tool.Tool{request(t, to), browse(t, to)} {
				args := map[string]any{"url": url}
				if made.Name == task.BuiltinHTTPRequest {
					args["method"] = "GET"
				}
				call(t, made, args)
				if got := seen(); got != want {
					t.Errorf("%s %s sends %s, want %s", made.Name, url, got, want)
				}
			}
		}
	}
}

// A judge is the session of a call. It allows only what it does not deny.
type judge struct {
	tool.Session
	deny, asked string
}

func (j *judge) Authorize(_ context.Context, args json.RawMessage) *tool.Error {
	j.asked = string(args)
	if strings.Contains(j.asked, j.deny) {
		return &tool.Error{Message: "Denied by policy rule elsewhere.", Recommendations: []string{"Do something else."}}
	}
	return nil
}

// The target of a redirect is judged by the policy of the session as if it had
// been asked for, and is not requested where that does not allow it.
func TestAPolicyJudgesTheTargetOfARedirect(t *testing.T) {
	var arrived []string
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		arrived = append(arrived, r.Method+" "+r.URL.Path)
		if to := r.URL.Query().Get("to"); to != "" {
			w.Header().Set("Location", to)
			code := http.StatusTemporaryRedirect
			if r.URL.Query().Has("see") {
				code = http.StatusSeeOther
			}
			w.WriteHeader(code)
			return
		}
		fmt.Fprint(w, "here it is")
	})
	o := Options{Allow: here}
	ask := func(made tool.Tool, j *judge, args string) string {
		got, err := made.Call(t.Context(), tool.Call{ID: "c1", Name: made.Name, Args: json.RawMessage(args), Emit: func(string) {}, Session: j})
		if err != nil {
			t.Fatal(err)
		}
		return got.Render()
	}
	j := &judge{deny: "/secret"}
	got := ask(request(t, o), j, `{"method":"POST","url":"`+s.URL+`/a?to=/b","headers":{"X-A":"1"},"body":"b"}`)
	has(t, got, "here it is")
	got = ask(request(t, o), j, `{"method":"POST","url":"`+s.URL+`/a?to=/x/../s%2565cret","headers":{"X-A":"1"},"body":"b"}`)
	has(t, got, "was requested and answered, but the redirect to "+s.URL+"/secret is not followed: Denied by policy rule elsewhere.\n- Do something else.")
	if want := `{"method":"POST","url":"` + s.URL + `/secret","headers":{"X-A":"1"},"body":"b"}`; j.asked != want {
		t.Errorf("judged %s, want %s", j.asked, want)
	}
	has(t, ask(browse(t, o), j, `{"url":"`+s.URL+`/a?to=//`+strings.TrimPrefix(s.URL, "http://")+`/secret"}`), "is not followed: Denied by policy rule elsewhere.")
	for _, path := range arrived {
		if strings.HasSuffix(path, "/secret") {
			t.Errorf("requested %s", path)
		}
	}
	has(t, ask(request(t, o), j, `{"method":"POST","url":"`+s.URL+`/a?see&to=http://127.0.0.1:1/","headers":{"X-A":"1"},"body":"b"}`), "is not followed: dial")
	if want := `{"method":"GET","url":"http://127.0.0.1:1/"}`; j.asked != want {
		t.Errorf("judged %s, want %s", j.asked, want)
	}
}
