package main

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/backend/backendtest"
	"github.com/deckhand-dev/deckhand/runner/backend/store"
	"github.com/deckhand-dev/deckhand/runner/registry"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A service that keeps memories, as httpKV expects it.
func service(t *testing.T) string {
	t.Helper()
	kv := store.NewMemory(store.MemoryOptions{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		key := strings.TrimPrefix(r.URL.Path, "/team-a/clerk/")
		when := store.Revision(r.Header.Get("If-Match"))
		var err error
		switch {
		case r.Method == http.MethodPut:
			data, _ := io.ReadAll(r.Body)
			when, err = kv.Put(r.Context(), key, data, when)
		case r.Method == http.MethodDelete:
			err = kv.Delete(r.Context(), key, when)
		case r.URL.Query().Has("prefix"):
			all := []store.Entry{}
			for e := range kv.List(r.Context(), r.URL.Query().Get("prefix")) {
				all = append(all, e)
			}
			_ = json.NewEncoder(w).Encode(all)
			return
		default:
			var v store.Value
			v, err = kv.Get(r.Context(), key)
			when = v.Revision
			w.Header().Set("ETag", string(when))
			defer func() { _, _ = w.Write(v.Data) }()
		}
		w.Header().Set("ETag", string(when))
		for status, known := range statuses {
			if errors.Is(err, known) {
				w.WriteHeader(status)
			}
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

var clerk = registry.BackendSpec{Run: task.Run{Namespace: "team-a"}, Agent: task.Agent{Name: "clerk"}}

// The conformance suite of drivers.
func TestMemoriesAreADriver(t *testing.T) {
	backendtest.Run(t, func(t *testing.T) backend.Driver {
		t.Setenv("MEMORIES_URL", service(t))
		d, err := newMemories(t.Context(), clerk)
		if err != nil {
			t.Fatal(err)
		}
		return d
	})
}

func TestMemoriesOutliveTheProcess(t *testing.T) {
	t.Setenv("MEMORIES_URL", service(t))
	for i, when := range []backend.Version{backend.Absent, backend.Absent} {
		d, err := newMemories(t.Context(), clerk)
		if err != nil {
			t.Fatal(err)
		}
		_, err = backend.New(d, nil).Write(t.Context(), "pilot.txt", []byte{byte('a' + i)}, when)
		if i == 1 && !errors.Is(err, backend.ErrExists) || i == 0 && err != nil {
			t.Errorf("process %d: %v", i+1, err)
		}
	}
}

func TestMemoriesThatAreDown(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	t.Cleanup(server.Close)
	t.Setenv("MEMORIES_URL", server.URL)
	d, err := newMemories(t.Context(), clerk)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.List(t.Context(), "."); err == nil || !strings.Contains(err.Error(), "502") {
		t.Errorf("List: %v", err)
	}
}
