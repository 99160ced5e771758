package web

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/address/addresstest"
)

// inside are ways to write where no model may go; the last three only while no
// list opens them.
var inside = []string{
	"127.0.0.1", "127.1.1.1", "localhost", "0.0.0.0", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[0:0:0:0:0:ffff:7f00:1]",
	"2130706433", "0x7f000001", "0177.0.0.1", "127.1", "０x7f.1", "169.254.169.254", "[fd00:ec2::254]", "[fe80::1%25lo]",
	"user@127.0.0.1", "public.example@127.0.0.1", "rebind.example", "metadata.example",
	"inside.example", "10.0.0.1", "[fd12::1]",
}

// Nothing on this machine is reached, however its address is written, and the
// server does not so much as see a connection.
func TestThisMachineIsNotReached(t *testing.T) {
	var seen atomic.Int32
	s := serve(t, func(http.ResponseWriter, *http.Request) { seen.Add(1) })
	port := s.URL[strings.LastIndex(s.URL, ":"):]
	resolver := addresstest.Resolver(map[string][]string{
		"rebind.example.": {"127.0.0.1"}, "metadata.example.": {"169.254.169.254"}, "inside.example.": {"10.0.0.1"},
	})
	listed := []string{"127.0.0.1", "127.1.1.1", "localhost", "0.0.0.0", "::1", "169.254.169.254", "fd00:ec2::254", "*.example"}
	for name, o := range map[string]Options{"": {resolver: resolver}, ", though listed": {resolver: resolver, Hosts: listed}} {
		hosts := inside
		if len(o.Hosts) > 0 {
			hosts = hosts[:len(hosts)-3]
		}
		for _, host := range hosts {
			url := "http://" + host + port + "/"
			for _, got := range []string{get(t, o, url), call(t, browse(t, o), map[string]any{"url": url}).Render()} {
				if !strings.HasPrefix(got, "Error: ") || strings.Contains(got, "was not requested") != strings.Contains(got, "\n- ") {
					t.Errorf("%s%s: %s", host, name, got)
				}
			}
		}
	}
	if n := seen.Load(); n != 0 {
		t.Errorf("the server was asked %d times", n)
	}
}

func TestARefusedAddressSaysWhatToDo(t *testing.T) {
	o := Options{resolver: addresstest.Resolver(map[string][]string{"meta.example.": {"169.254.169.254"}})}
	has(t, get(t, o, "http://meta.example/latest/"),
		"Error: http://meta.example/latest/ was not requested: the address 169.254.169.254 may not be reached", "the owner of this agent")
	has(t, get(t, o, "http://nobody.example/"), "there is no host nobody.example", "Check how the host is written")
	has(t, get(t, Options{Hosts: []string{"a.example", "*.b.example"}}, "http://c.example/"),
		"this tool may not reach the host c.example", "It may reach: a.example, *.b.example")
}

// A name that leads elsewhere the second time is judged the second time.
func TestRebinding(t *testing.T) {
	var seen atomic.Int32
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		seen.Add(1)
		http.Redirect(w, r, "/next", http.StatusFound)
	})
	port := s.URL[strings.LastIndex(s.URL, ":"):]
	o := Options{Allow: here, resolver: addresstest.Resolver(map[string][]string{"twice.example.": {"127.0.0.1", "127.0.0.2"}})}
	has(t, get(t, o, "http://twice.example"+port+"/"), "the address 127.0.0.2 may not be reached")
	if n := seen.Load(); n != 1 {
		t.Errorf("the server was asked %d times, want once", n)
	}
}

func TestRedirects(t *testing.T) {
	var other *httptest.Server
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		to := r.URL.Query().Get("to")
		switch {
		case r.URL.Path == "/loop":
			to = "/loop"
		case strings.HasPrefix(r.URL.Path, "/hops/"):
			var n int
			if _, err := fmt.Sscanf(r.URL.Path, "/hops/%d", &n); err == nil && n > 0 {
				to = fmt.Sprintf("/hops/%d", n-1)
			}
		case to == "other":
			to = other.URL + "/?to=" + s0(r)
		}
		if to != "" {
			w.Header().Set("Location", to)
			w.WriteHeader(http.StatusTemporaryRedirect)
			return
		}
		fmt.Fprintf(w, "arrived with %v", r.Header)
	})
	other = serve(t, func(w http.ResponseWriter, r *http.Request) {
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		fmt.Fprintf(w, "elsewhere with %v", r.Header)
	})
	o := Options{Allow: here}
	cases := map[string]struct{ url, want string }{
		"to the metadata service":      {"/?to=http://169.254.169.254/latest/", "was requested and answered, but the redirect to http://169.254.169.254/latest/ is not followed: dial tcp 169.254.169.254:80: the address 169.254.169.254 may not be reached\n- Only public"},
		"to nobody":                    {"/?to=http://127.0.0.1:1/", "the redirect to http://127.0.0.1:1/ is not followed: dial tcp"},
		"to a file":                    {"/?to=file:///etc/passwd", `its scheme is "file"`},
		"to an address as one number":  {"/?to=http://2130706433/", "four decimal numbers"},
		"with a password":              {"/?to=http://u:secret@127.0.0.1/", "user or password"},
		"without end":                  {"/loop", "there were more than 5"},
		"as many as are followed":      {"/hops/5", "arrived with"},
		"one more":                     {"/hops/6", "there were more than 5"},
		"to another place of the host": {"/?to=/there", "arrived with"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got := get(t, o, s.URL+tc.url)
			has(t, got, tc.want)
		})
	}
	t.Run("headers stay with their host", func(t *testing.T) {
		args := map[string]any{"method": "GET", "url": s.URL + "/?to=other", "headers": map[string]string{
			"Authorization": "Bearer secret", "X-Api-Key": "secret", "Cookie": "a=secret", "Accept": "text/x",
		}}
		got := call(t, request(t, o), args).Render()
		has(t, got, "elsewhere with", "text/x", "[redirected to "+other.URL)
		hasNot(t, got, "secret", "Referer")
		args["url"] = s.URL + "/?to=other&back=1"
		got = call(t, request(t, o), args).Render()
		has(t, got, "arrived with") // where they were meant for, but sent there by another
		hasNot(t, got, "secret")
		args["url"] = s.URL + "/?to=/there"
		has(t, call(t, request(t, o), args).Render(), "Bearer secret", "X-Api-Key")
	})
	t.Run("only to hosts of the list", func(t *testing.T) {
		got := get(t, Options{Allow: here, Hosts: []string{"127.0.0.1"}}, s.URL+"/?to=http://example.com/")
		has(t, got, "this tool may not reach the host example.com", "It may reach: 127.0.0.1")
	})
}

// s0 is where the other server of TestRedirects sends back to.
func s0(r *http.Request) string {
	if r.URL.Query().Get("back") != "" {
		return "http://" + r.Host + "/there"
	}
	return ""
}

func TestFromHTTPSToHTTPIsNotFollowed(t *testing.T) {
	plain := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "in the clear") })
	s := httptest.NewTLSServer(http.RedirectHandler(plain.URL, http.StatusFound))
	t.Cleanup(s.Close)
	made, list, err := Options{Allow: here}.newClient()
	if err != nil {
		t.Fatal(err)
	}
	made.Transport.(*http.Transport).TLSClientConfig = s.Client().Transport.(*http.Transport).TLSClientConfig
	r := &requester{client: made, hosts: list}
	got, err := r.call(t.Context(), toolCall, requestIn{Method: http.MethodGet, URL: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	has(t, got.Render(), "it leads from https to http", "Request that URL itself")
}

func TestACertificateThatIsNotTrusted(t *testing.T) {
	s := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	has(t, get(t, Options{Allow: here}, s.URL), "its certificate is not to be trusted")
}

func TestProxiesOfTheEnvironmentAreNotUsed(t *testing.T) {
	proxy := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the proxy was asked") })
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("http_proxy", proxy.URL)
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "direct") })
	port := s.URL[strings.LastIndex(s.URL, ":"):]
	o := Options{Allow: here, resolver: addresstest.Resolver(map[string][]string{"site.example.": {"127.0.0.1"}})}
	has(t, get(t, o, "http://site.example"+port), "direct")
}
