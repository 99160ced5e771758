package egress

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A host is reached by its own name, one below a wildcard by a longer name with that end, and nothing
// else.
func TestWhichNamesAnEntryContains(t *testing.T) {
	for _, tc := range []struct {
		entry, name, port string
		want              bool
	}{
		{"example.com", "example.com", "443", true},
		{"Example.COM.", "example.com", "443", true},
		{"example.com", "www.example.com", "443", false},
		{"example.com", "example.comm", "443", false},
		{"example.com", "anexample.com", "443", false},
		{"example.com", "com", "443", false},
		{"*.example.com", "www.example.com", "443", true},
		{"*.example.com", "a.b.example.com", "80", true},
		{"*.example.com", "example.com", "443", false},
		{"*.example.com", ".example.com", "443", false},
		{"*.example.com", "anexample.com", "443", false},
		{"*.example.com", "www.example.org", "443", false},
		{"*.example.com", "a-much-longer-name.attacker.example", "443", false},
		{"*.example.com", "www.example.com.attacker.example", "443", false},
		{"example.com:8443", "example.com", "8443", true},
		{"example.com:8443", "example.com", "443", false},
		{"example.com:8443", "example.com", "", false},
		{"*.example.com:8443", "www.example.com", "8443", true},
		{"*.example.com:8443", "www.example.com", "443", false},
		{"192.0.2.1", "192.0.2.1", "80", true},
		{"[2001:DB8:0::1]:80", "2001:db8::1", "80", true},
		{"::ffff:192.0.2.1", "192.0.2.1", "80", true},
	} {
		h, ok := readHost(tc.entry)
		if got := h.matches(tc.name, tc.port); !ok || got != tc.want {
			t.Errorf("%s, port %s, in %s: %t, %t", tc.name, tc.port, tc.entry, got, ok)
		}
	}
}

func TestBoundsOfNamesAndPorts(t *testing.T) {
	name := strings.Repeat("a.", 126) + "b" // 253 bytes
	for entry, want := range map[string]bool{
		name: true, name + ".": true, name + "c": false, "a:1": true, "a:65535": true, "a:0": false, "a:65536": false, "a:http": false, "a:": false,
		"": false, ".": false, "a..b": false, ".a": false, "*": false, "*.": false, "*.*.a": false, "a*": false, "*.192.0.2.1": false, "a/b": false, "a b": false, "é.example": false,
		"1": false, "0x7f.1": false, "a.0x7f": false, "a.0xg": true, "2130706433": false, "fe80::1%eth0": false, "a_b-c.d0": true, "http://a": false,
	} {
		if _, ok := readHost(entry); ok != want {
			t.Errorf("%.80q: %t", entry, ok)
		}
	}
	if _, err := readHosts(make([]string, maxHosts+1)); err == nil || !strings.HasPrefix(err.Error(), fmt.Sprint(maxHosts+1)+" hosts are too many") {
		t.Errorf("too many hosts: %v", err)
	}
	list := make([]string, maxHosts)
	for i := range list {
		list[i] = "example.com"
	}
	if all, err := readHosts(list); err != nil || len(all) != maxHosts {
		t.Errorf("%d hosts, %v", len(all), err)
	}
}

// HTTP/2 gives a proxy no connection of its own.
func TestATunnelNeedsAConnection(t *testing.T) {
	n := &network{addresses: []string{"93.184.216.1"}, answer: []string{"93.184.216.1"}}
	p := n.proxy(t)
	w := httptest.NewRecorder() // from which no connection can be taken
	r := httptest.NewRequestWithContext(t.Context(), http.MethodConnect, "http://good.example:443", http.NoBody)
	r.Host = "good.example:443"
	p.ServeHTTP(w, r)
	if text := w.Body.String(); w.Code != http.StatusHTTPVersionNotSupported || text != "tunnels are for HTTP/1.1\n" {
		t.Errorf("%d %s", w.Code, text)
	}
}

func TestAProxyThatCannotServeIsAnError(t *testing.T) {
	dir := t.TempDir()
	full := filepath.Join(dir, "full")
	if err := os.MkdirAll(filepath.Join(full, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		socket string
		hosts  []string
		want   string
	}{
		"a host that is none":        {filepath.Join(dir, "socket"), []string{"http://a"}, `"http://a" is no host`},
		"a directory that is absent": {filepath.Join(dir, "missing", "socket"), nil, "listening for the proxy"},
		"a directory in its place":   {full, nil, "removing the proxy's socket"},
	} {
		if err := Serve(t.Context(), tc.socket, Options{Hosts: tc.hosts}); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
