package main

import (
	"context"
	"regexp"

	"github.com/deckhand-dev/deckhand/runner/middleware"
	"github.com/deckhand-dev/deckhand/runner/registry"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

var phone = regexp.MustCompile(`\b0[0-9]{3} [0-9]{3} [0-9]{4}\b`)

// hide replaces the phone numbers in a text.
func hide(text string) string { return phone.ReplaceAllString(text, "(hidden)") }

// newPrivacy returns a layer that hides phone numbers in the results of tools.
func newPrivacy(context.Context, registry.LayerSpec) (middleware.Layer, error) {
	return middleware.Layer{
		Name: "privacy", Priority: 600,
		Instructions: "Phone numbers are hidden from you. Do not ask for them.",
		Tool: func(next middleware.ToolFunc) middleware.ToolFunc {
			return func(ctx context.Context, c *tool.Call) (tool.Result, error) {
				result, err := next(ctx, c)
				result.Text, result.Summary = hide(result.Text), hide(result.Summary)
				if result.Error != nil {
					result.Error = &tool.Error{Message: hide(result.Error.Message), Recommendations: result.Error.Recommendations}
				}
				return result, err
			}
		},
	}, nil
}
