package control

import (
	"context"
	_ "embed"

	"github.com/deckhand-dev/deckhand/runner/tool"
)

//go:embed reject.md
var rejectPage string

type rejectIn struct {
	Reason string `json:"reason" jsonschema:"why it cannot or should not be done"`
}

// Reject ends a Run that cannot or should not be done.
func Reject() tool.Tool {
	return tool.Typed(ending(NameReject, rejectPage), func(_ context.Context, _ tool.Call, in rejectIn) (tool.Result, error) {
		return tool.Result{Text: in.Reason}, nil
	})
}
