package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/deckhand-dev/deckhand/internal/testing/otlptest"
)

// newHandler returns the handler of the server: pages first, then an MCP server, and two APIs of models over one
// script.
func newHandler(chat, tools http.Handler, pages *http.ServeMux) http.Handler {
	asked, effects, collector := &journal{entries: []Entry{}}, &counter{counts: map[string]int{}}, &otlptest.Collector{}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Method + " " + r.URL.Path {
		case "GET /healthz":
			fmt.Fprintln(w, "ok")
			return
		case "GET /journal":
			asked.ServeHTTP(w, r)
			return
		case "POST /count":
			effects.add(w, r)
			return
		case "GET /counts":
			effects.list(w, r)
			return
		case "POST /v1/traces", "POST /v1/metrics":
			collector.ServeHTTP(w, r)
			return
		case "GET /traces":
			w.Header().Set("Content-Type", "text/plain; charset=utf-8")
			_, _ = io.WriteString(w, collector.Tree(r.URL.Query()["attributes"]...)) //nolint:gosec // plain text, for tests
			return
		}
		asked.record(r)
		if page, pattern := pages.Handler(r); pattern != "" {
			page.ServeHTTP(w, r)
			return
		}
		if r.URL.Path == "/mcp" {
			tools.ServeHTTP(w, r)
			return
		}
		normalizeKey(r)
		if strings.HasSuffix(r.URL.Path, "/messages") && r.Method == http.MethodPost {
			messages(w, r, chat)
			return
		}
		chat.ServeHTTP(w, r)
	})
}

// normalizeKey copies the API key from the header of the provider to the header that scripts read.
func normalizeKey(r *http.Request) {
	for _, name := range []string{"Api-Key", "X-Api-Key"} {
		if key := r.Header.Get(name); key != "" && r.Header.Get("Authorization") == "" {
			r.Header.Set("Authorization", "Bearer "+key)
		}
	}
}
