package main

import (
	"context"
	"regexp"

	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/task"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

var phone = regexp.MustCompile(`\b0[0-9]{3} [0-9]{3} [0-9]{4}\b`)

// newPrivacy is a layer that keeps phone numbers from every model.
func newPrivacy(task.Agent, task.Run) (middleware.Layer, error) {
	return middleware.Layer{
		Name: "privacy", Priority: 600,
		Instructions: "Phone numbers are hidden from you. Do not ask for them.",
		Tool: func(next middleware.ToolFunc) middleware.ToolFunc {
			return func(ctx context.Context, c *tool.Call) (tool.Result, error) {
				result, err := next(ctx, c)
				result.Text = phone.ReplaceAllString(result.Text, "(hidden)")
				return result, err
			}
		},
	}, nil
}
