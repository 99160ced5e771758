package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A world is a proxy between a program and hosts that this test makes up.
type fixture struct {
	client *http.Client
	socket string

	mu     sync.Mutex
	dialed []string
	logged []string
	// refused are the host, port and reason of each refused connection.
	refused []string
}

// names are where names lead in the world.
var names = map[string][]string{
	"good.example":       {"93.184.216.34"},
	"api.good.example":   {"10.0.0.1", "93.184.216.34"},
	"rebound.example":    {"127.0.0.1"},
	"metadata.example":   {"169.254.169.254"},
	"cluster.example":    {"10.96.0.1"},
	"shared.example":     {"100.64.0.1"},
	"six.example":        {"::1"},
	"mapped.example":     {"::ffff:169.254.169.254"},
	"translated.example": {"64:ff9b::10.0.0.1"},
}

func (*fixture) resolve(_ context.Context, name string) ([]netip.Addr, error) {
	var all []netip.Addr
	for _, a := range names[name] {
		all = append(all, netip.MustParseAddr(a))
	}
	if len(all) == 0 {
		return nil, errors.New("no such host")
	}
	return all, nil
}

// start serves a proxy whose every host is one server.
func start(t *testing.T, server string, hosts ...string) *fixture {
	t.Helper()
	dir, err := os.MkdirTemp("", "egress") //nolint:usetesting // the name of a socket has to be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	w := &fixture{socket: filepath.Join(dir, "proxy.sock")}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	o := Options{
		Hosts: hosts, Resolve: w.resolve,
		Log: func(host string, allowed bool) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.logged = append(w.logged, fmt.Sprint(host, " ", allowed))
		},
		Refused: func(host, port, reason string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.refused = append(w.refused, host+" "+port+" "+reason)
		},
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			w.mu.Lock()
			w.dialed = append(w.dialed, address)
			w.mu.Unlock()
			return (&net.Dialer{}).DialContext(ctx, network, server)
		},
	}
	l, err := listen(ctx, w.socket) // so that it is there when Serve takes over below
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	go func() { done <- Serve(ctx, w.socket, o) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Serve: %v", err)
		}
	})
	w.client = &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: "proxy.invalid:1"}),
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			for {
				conn, err := (&net.Dialer{}).DialContext(ctx, "unix", w.socket)
				if err == nil || ctx.Err() != nil {
					return conn, err
				}
			}
		},
	}}
	t.Cleanup(w.client.CloseIdleConnections)
	return w
}

// get asks the world for a URL over the proxy.
func (f *fixture) get(t *testing.T, address string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := f.client.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// tunnel asks for a tunnel by hand.
func (f *fixture) tunnel(t *testing.T, to string) (conn net.Conn, status int, text string) {
	t.Helper()
	conn = f.dial(t)
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", to, to)
	status, text = read(t, conn, http.MethodConnect)
	return conn, status, text
}

// dial connects to the proxy.
func (f *fixture) dial(t *testing.T) net.Conn {
	t.Helper()
	conn, err := f.client.Transport.(*http.Transport).DialContext(t.Context(), "", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// read reads an answer, and of one that is no tunnel the text.
func read(t *testing.T, conn net.Conn, method string) (int, string) {
	t.Helper()
	answer, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: method})
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer answer.Body.Close()
	if method == http.MethodConnect && answer.StatusCode == http.StatusOK {
		return answer.StatusCode, ""
	}
	text, _ := io.ReadAll(answer.Body)
	return answer.StatusCode, string(text)
}

func echo(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "%s %s %s via=%q", r.Method, r.Host, r.URL, r.Header.Get("X-Forwarded-For")+r.Header.Get("Proxy-Authorization"))
	}))
	t.Cleanup(s.Close)
	return s
}

func TestWhatIsReached(t *testing.T) {
	server := echo(t).Listener.Addr().String()
	const closed = "add the host to sandbox.egress.hosts of the Agent"
	const private = "leads to no public address"
	everything := []string{
		"good.example", "*.good.example", "rebound.example", "metadata.example", "cluster.example", "shared.example", "six.example",
		"mapped.example", "translated.example", "169.254.169.254", "10.0.0.1", "1.1.1.1", "nowhere.example",
	}
	cases := map[string]struct {
		hosts  []string
		to     string
		status int
		says   string
		dials  []string
	}{
		"a host of the list":                    {everything, "good.example:80", 200, "good.example", []string{"93.184.216.34:80"}},
		"a host of the list, spelled otherwise": {everything, "GOOD.example.:80", 200, "GOOD.example", []string{"93.184.216.34:80"}},
		"a host below one, at a public address": {everything, "api.good.example:81", 200, "api.good.example:81", []string{"93.184.216.34:81"}},
		"an address of the list":                {everything, "1.1.1.1:80", 200, "1.1.1.1", []string{"1.1.1.1:80"}},
		"a host at its port":                    {[]string{"good.example:8080"}, "good.example:8080", 200, "good.example:8080", []string{"93.184.216.34:8080"}},
		"a host at another port":                {[]string{"good.example:8080"}, "good.example:80", 403, closed, nil},
		"a host without a list":                 {nil, "good.example:80", 403, closed, nil},
		"a host that is not listed":             {[]string{"good.example"}, "evil.example:80", 403, closed, nil},
		"a host that ends like one":             {[]string{"good.example"}, "notgood.example:80", 403, closed, nil},
		"a host below one that is listed alone": {[]string{"good.example"}, "api.good.example:80", 403, closed, nil},
		"a host above a wildcard":               {[]string{"*.good.example"}, "good.example:80", 403, closed, nil},
		"a listed name that leads to loopback":  {everything, "rebound.example:80", 403, private, nil},
		"a listed name that leads to metadata":  {everything, "metadata.example:80", 403, private, nil},
		"a listed name that leads to a Service": {everything, "cluster.example:80", 403, private, nil},
		"a listed name at shared addresses":     {everything, "shared.example:80", 403, private, nil},
		"a listed name at loopback of IPv6":     {everything, "six.example:80", 403, private, nil},
		"a listed name at a mapped address":     {everything, "mapped.example:80", 403, private, nil},
		"a listed name at a translated address": {everything, "translated.example:80", 403, private, nil},
		"a listed address of metadata":          {everything, "169.254.169.254:80", 403, private, nil},
		"a listed address of the cluster":       {everything, "10.0.0.1:80", 403, private, nil},
		"an address as a number":                {everything, "2852039166:80", 403, "is no host name", nil},
		"an address in hex":                     {everything, "0xa9fea9fe:80", 403, "is no host name", nil},
		"a listed name that leads nowhere":      {everything, "nowhere.example:80", 502, "no such host", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := start(t, server, tc.hosts...)
			status, text := w.get(t, "http://"+tc.to+"/x")
			if status != tc.status || !strings.Contains(text, tc.says) {
				t.Errorf("GET: %d %q, want %d with %q", status, text, tc.status, tc.says)
			}
			if diff := cmp.Diff(tc.dials, w.dialed); diff != "" {
				t.Errorf("addresses dialed, -want +got:\n%s", diff)
			}
			_, tunneled, refusal := w.tunnel(t, strings.Replace(tc.to, "%25", "%", 1))
			if tunneled != tc.status || tc.status != 200 && !strings.Contains(refusal, tc.says) {
				t.Errorf("CONNECT: %d %q, want %d with %q", tunneled, refusal, tc.status, tc.says)
			}
		})
	}
}

func TestATunnelNeedsAPort(t *testing.T) {
	for _, to := range []string{"good.example", "good.example:", "good.example:0", "good.example:65536", "good.example:http"} {
		w := start(t, "127.0.0.1:1", "good.example")
		if _, status, says := w.tunnel(t, to); status != http.StatusForbidden && status != http.StatusBadRequest || len(w.dialed) > 0 {
			t.Errorf("%s: %d %q, dialed %v", to, status, says, w.dialed)
		}
	}
}

func TestATunnelCarriesBytesAndItsEndBothWays(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		all, _ := io.ReadAll(conn)
		fmt.Fprintf(conn, "heard %s", all)
	}()
	w := start(t, l.Addr().String(), "good.example")
	conn, _, _ := w.tunnel(t, "good.example:443")
	io.WriteString(conn, "hello")
	conn.(*net.UnixConn).CloseWrite()
	got, err := io.ReadAll(conn)
	if err != nil || string(got) != "heard hello" {
		t.Errorf("read %q, %v", got, err)
	}
}

func TestEachHostIsLoggedOnce(t *testing.T) {
	w := start(t, echo(t).Listener.Addr().String(), "good.example")
	for _, to := range []string{"good.example", "GOOD.example", "evil.example", "good.example", "evil.example"} {
		w.get(t, "http://"+to+"/")
	}
	if diff := cmp.Diff([]string{"good.example true", "evil.example false"}, w.logged); diff != "" {
		t.Errorf("told, -want +got:\n%s", diff)
	}
}

func TestEachRefusedConnectionIsCounted(t *testing.T) {
	w := start(t, echo(t).Listener.Addr().String(), "good.example", "rebound.example", "nowhere.example")
	for _, to := range []string{"good.example", "EVIL.example.:81", "evil.example:81", "rebound.example", "nowhere.example", "0x7f.1"} {
		w.get(t, "http://"+to+"/")
	}
	w.tunnel(t, "evil.example:443")
	w.tunnel(t, "evil.example")
	w.tunnel(t, "a!b.example:443")
	want := []string{
		"evil.example 81 NotListed", "evil.example 81 NotListed", "rebound.example 80 NotPublic",
		"  NotListed", "evil.example 443 NotListed", "  NotListed", "  NotListed",
	}
	if diff := cmp.Diff(want, w.refused); diff != "" {
		t.Errorf("refused, -want +got:\n%s", diff)
	}
}

func TestProgramsLearnNothingOfTheProxyAndHostsNothingOfPrograms(t *testing.T) {
	w := start(t, echo(t).Listener.Addr().String(), "good.example")
	conn := w.dial(t)
	// The Host header is another than the URL's: it is the URL's that counts.
	io.WriteString(conn, "GET http://good.example/a HTTP/1.1\r\nHost: evil.example\r\nProxy-Authorization: Basic eA==\r\nConnection: close\r\n\r\n")
	if _, text := read(t, conn, http.MethodGet); text != `GET good.example /a via=""` {
		t.Errorf("the host saw %s", text)
	}
}

func TestWhatIsNoRequestOfAProxyIsRefused(t *testing.T) {
	w := start(t, echo(t).Listener.Addr().String(), "good.example")
	for _, line := range []string{"GET / HTTP/1.1", "GET https://good.example/ HTTP/1.1", "CONNECT good.example HTTP/1.1", "GET ftp://good.example/ HTTP/1.1"} {
		conn := w.dial(t)
		fmt.Fprintf(conn, "%s\r\nHost: good.example\r\nConnection: close\r\n\r\n", line)
		status, _ := read(t, conn, http.MethodGet)
		if status != http.StatusBadRequest && status != http.StatusForbidden {
			t.Errorf("%s: %d", line, status)
		}
	}
	if len(w.dialed) > 0 {
		t.Errorf("dialed %v", w.dialed)
	}
}

func TestHostsThatAreNone(t *testing.T) {
	for _, bad := range []string{"", "*", "*.", "http://x.example", "x.example/y", "x y", "*.*.example", "a*.example", "x.example:0", "x.example:http", "*.10.0.0.1", "2130706433", "..", "ü.example"} {
		_, err := readHosts([]string{"good.example", bad})
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q is no host: write one such as", bad)) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := readHosts([]string{"good.example", "*.good.example", "GOOD.example.:443", "*.x.example:80", "1.1.1.1", "[2606:4700::1111]:443", "2606:4700::1111"}); err != nil {
		t.Errorf("good hosts: %v", err)
	}
	if err := Serve(t.Context(), "/nonexistent/proxy.sock", Options{Hosts: []string{"*"}}); err == nil {
		t.Error("a proxy was served with a host that is none")
	}
}
