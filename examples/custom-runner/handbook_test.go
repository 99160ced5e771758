package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/backend"
	"github.com/deckhand-dev/deckhand/runner/registry"
)

func TestTheHandbookIsReadAndNotWritten(t *testing.T) {
	d, err := newHandbook(t.Context(), registry.BackendSpec{})
	if err != nil {
		t.Fatal(err)
	}
	b := backend.New(d, nil)
	page, err := b.Read(t.Context(), "returns.md", backend.Window{Limit: 10})
	if err != nil || !strings.Contains(strings.Join(page.Lines, "\n"), "thirty days") {
		t.Errorf("it says %q, %v", page.Lines, err)
	}
	_, writing := b.Write(t.Context(), "returns.md", nil, backend.Any)
	_, editing := b.Edit(t.Context(), "returns.md", backend.Edit{Old: "thirty", New: "sixty"})
	if !errors.Is(writing, backend.ErrDenied) || !errors.Is(editing, backend.ErrDenied) {
		t.Errorf("writing: %v, editing: %v", writing, editing)
	}
}
