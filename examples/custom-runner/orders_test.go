package main

import (
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/registry"
	"github.com/deckhand-dev/deckhand/runner/tool/tooltest"
)

func TestOrdersAreLookedUp(t *testing.T) {
	tools, err := newOrders(t.Context(), registry.ToolSpec{})
	if err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		`{"number":7}`:   "Order 7: two lamps, for 0170 555 1234.",
		`{"number":0}`:   "Error: there is no such order\n- Numbers begin with 1.",
		`{"number":"7"}`: "Error: Invalid arguments for Orders",
	} {
		result, err := tooltest.Call(t, tools[0], args)
		if err != nil || !strings.HasPrefix(result.Render(), want) {
			t.Errorf("for %s the model reads %q, %v", args, result.Render(), err)
		}
	}
}
