package main

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/registry"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool/tooltest"
)

func TestStock(t *testing.T) {
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Authorization") != "Bearer secret":
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path == "/items" && r.URL.Query().Get("item") == "A-100":
			_, _ = w.Write([]byte("12 in stock"))
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(service.Close)
	key := "secret"
	tools, err := newStock(t.Context(), registry.ToolSpec{
		Entry: task.Tool{Custom: "Stock", Endpoint: service.URL + "/items"},
		Key:   func() (string, error) { return key, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	call := func(args string) (string, error) {
		result, err := tooltest.Call(t, tools[0], args)
		return result.Render(), err
	}
	if got, err := call(`{"item":"A-100"}`); err != nil || got != "12 in stock" {
		t.Errorf("the model reads %q, %v", got, err)
	}
	if got, err := call(`{"item":"../keys&item=A-100"}`); err != nil || got != "Error: there is no item ../keys&item=A-100\n- Check the number: it is a letter, a dash and digits." {
		t.Errorf("of an item that does not exist the model reads %q, %v", got, err)
	}
	key = "old"
	if _, err := call(`{"item":"A-100"}`); err == nil || err.Error() != "the service answered 401 Unauthorized" {
		t.Errorf("with an old key the model reads %v", err)
	}
}

func TestStockNeedsAnEndpoint(t *testing.T) {
	if _, err := newStock(t.Context(), registry.ToolSpec{}); err == nil {
		t.Error("it works without settings.endpoint")
	}
}
