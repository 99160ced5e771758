package httpapi_test

import (
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/internal/model/wiretest"
	"github.com/deckhand-dev/deckhand/runner/model"
	"github.com/deckhand-dev/deckhand/runner/model/openai"
)

// TestMain lets the process trust the certificate that all servers of httptest have.
func TestMain(m *testing.M) {
	server := httptest.NewTLSServer(nil)
	server.Close()
	dir, err := os.MkdirTemp("", "httpapi")
	file := filepath.Join(dir, "ca.pem")
	if err == nil {
		err = os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600)
	}
	if err == nil {
		err = os.Setenv("SSL_CERT_FILE", file)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(dir) // a file of a test
	os.Exit(code)
}

// A retry goes over a new connection, and an ordinary call over the old one.
func TestConnections(t *testing.T) {
	fine := func(w http.ResponseWriter) {
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\"Hi\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	}
	status := func(code int) func(http.ResponseWriter) {
		return func(w http.ResponseWriter) { http.Error(w, "no", code) }
	}
	cases := map[string]struct {
		first func(http.ResponseWriter)
		want  int // connections of a call, and the one after it
	}{
		"after an answer":              {fine, 1},
		"after a refusal":              {status(http.StatusBadRequest), 1},
		"after a failure":              {status(http.StatusBadGateway), 2},
		"after an answer that is none": {func(w http.ResponseWriter) { fmt.Fprint(w, "<html>") }, 2},
		"after an answer that was cut": {func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, 2},
	}
	for name, tc := range cases {
		for _, http2 := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s over HTTP/2 %t", name, http2), func(t *testing.T) {
				if got := connectionsOfTwoCalls(t, http2, tc.first, fine); got != tc.want {
					t.Errorf("%d connections, want %d", got, tc.want)
				}
			})
		}
	}
}

// connectionsOfTwoCalls returns how many connections two calls of a model open. The second
// must succeed.
func connectionsOfTwoCalls(t *testing.T, http2 bool, answers ...func(http.ResponseWriter)) int {
	t.Helper()
	var connections, calls atomic.Int32
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answers[calls.Add(1)-1](w)
	}))
	server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections.Add(1)
		}
	}
	server.EnableHTTP2 = http2
	server.StartTLS()
	t.Cleanup(server.Close)
	m, err := openai.New(openai.Options{Provider: openai.ProviderOpenAICompatible, Model: "m", Endpoint: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	for range answers {
		_, err = model.Collect(m.Stream(t.Context(), wiretest.Ask), nil)
	}
	if err != nil {
		t.Error(err)
	}
	return int(connections.Load())
}
