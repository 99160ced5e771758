package httpclient_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/httpclient"
)

func TestBounds(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/elsewhere":
			http.Redirect(w, r, "/", http.StatusTemporaryRedirect)
		case "/large":
			w.Header().Set("X-Large", strings.Repeat("x", 300<<10))
		}
	}))
	t.Cleanup(server.Close)
	c := httpclient.New(httpclient.Transport((&net.Dialer{}).DialContext))
	for path, want := range map[string]string{"/": "200 OK", "/elsewhere": "307 Temporary Redirect", "/large": "server response headers exceeded"} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		var got string
		if res, err := c.Do(req); err != nil {
			got = err.Error()
		} else {
			got = res.Status
			_ = res.Body.Close()
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}
