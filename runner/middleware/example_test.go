package middleware_test

import (
	"context"
	"fmt"
	"time"

	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A layer that measures how long calls take and lets nobody delete.
func ExampleLayer() {
	clock := func() time.Time { return time.Unix(0, 0) }
	watch := middleware.Layer{
		Name:         "watch",
		Priority:     500,
		Instructions: "Nothing can be deleted here.",
		Tool: func(next middleware.ToolFunc) middleware.ToolFunc {
			return func(ctx context.Context, c *tool.Call) (tool.Result, error) {
				if c.Name == "delete" {
					return tool.Result{}, &middleware.VetoError{By: "watch", Reason: "nothing is deleted here"}
				}
				began := clock()
				result, err := next(ctx, c)
				fmt.Printf("%s took %s\n", c.Name, clock().Sub(began))
				return result, err
			}
		},
	}

	stack, err := middleware.Build(watch)
	if err != nil {
		fmt.Println(err)
		return
	}
	call := stack.Tool(func(_ context.Context, c *tool.Call) (tool.Result, error) {
		return tool.Result{Text: "did " + c.Name}, nil
	})
	for _, name := range []string{"read", "delete"} {
		result, err := call(context.Background(), &tool.Call{Name: name})
		fmt.Println(result.Text, err)
	}
	// Output:
	// read took 0s
	// did read <nil>
	//  watch does not allow it: nothing is deleted here
}
