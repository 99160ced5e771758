package main

import (
	"context"
	"fmt"

	"github.com/deckhand-dev/deckhand/runner/registry"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// ordersIn are the arguments of the tool. Its JSON Schema is generated from them.
type ordersIn struct {
	Number int `json:"number" jsonschema:"the number of the order"`
}

// newOrders returns the tool for an entry custom: Orders of an Agent.
func newOrders(context.Context, registry.ToolSpec) ([]tool.Tool, error) {
	return []tool.Tool{tool.Typed(tool.Spec{
		Name: "Orders", Description: "Looks up an order by its number.",
		Effect: tool.ReadOnly, Concurrency: tool.Parallel,
	}, lookUp)}, nil
}

func lookUp(_ context.Context, _ tool.Call, in ordersIn) (tool.Result, error) {
	if in.Number <= 0 {
		return tool.Fail("there is no such order", "Numbers begin with 1."), nil
	}
	return tool.Result{Text: fmt.Sprintf("Order %d: two lamps, for 0170 555 1234.", in.Number)}, nil
}
