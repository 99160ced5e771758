package main

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/registry"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

func TestPhoneNumbersAreHidden(t *testing.T) {
	tools, err := newOrders(t.Context(), registry.ToolSpec{})
	if err != nil {
		t.Fatal(err)
	}
	layer, err := newPrivacy(t.Context(), registry.LayerSpec{})
	if err != nil {
		t.Fatal(err)
	}
	stack, err := middleware.Build(layer)
	if err != nil {
		t.Fatal(err)
	}
	call := stack.Tool(func(ctx context.Context, c *tool.Call) (tool.Result, error) { return tools[0].Call(ctx, *c) })
	result, err := call(t.Context(), &tool.Call{Name: "Orders", Args: json.RawMessage(`{"number":7}`)})
	if err != nil || result.Render() != "Order 7: two lamps, for (hidden)." {
		t.Errorf("the model reads %q, %v", result.Render(), err)
	}
	failing := stack.Tool(func(context.Context, *tool.Call) (tool.Result, error) { return tool.Fail("ask 0170 555 1234"), nil })
	if result, err := failing(t.Context(), &tool.Call{}); err != nil || result.Render() != "Error: ask (hidden)" {
		t.Errorf("of an error the model reads %q, %v", result.Render(), err)
	}
}
