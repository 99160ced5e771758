package web

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/tool"
)

// here allows the servers of a test.
func here(a netip.Addr) bool { return a == netip.MustParseAddr("127.0.0.1") }

func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func request(t *testing.T, o Options) tool.Tool {
	t.Helper()
	made, err := HTTPRequest(o)
	if err != nil {
		t.Fatalf("HTTPRequest: %v", err)
	}
	return made
}

func browse(t *testing.T, o Options) tool.Tool {
	t.Helper()
	made, err := Browse(o)
	if err != nil {
		t.Fatalf("Browse: %v", err)
	}
	return made
}

// call makes a call with arguments that are values.
func call(t *testing.T, to tool.Tool, args map[string]any) tool.Result {
	t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	got, err := to.Call(t.Context(), tool.Call{ID: "s1c1", Name: to.Name, Args: raw, Emit: func(string) {}})
	if err != nil {
		t.Fatalf("Call(%s): %v", raw, err)
	}
	return got
}

func get(t *testing.T, o Options, url string) string {
	t.Helper()
	return call(t, request(t, o), map[string]any{"method": "GET", "url": url}).Render()
}

func has(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("there is no %q in:\n%.2000s", part, text)
		}
	}
}

func hasNot(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Errorf("there is %q in:\n%.2000s", part, text)
		}
	}
}
