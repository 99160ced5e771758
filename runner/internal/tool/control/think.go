package control

import (
	"context"
	_ "embed"
	"strings"

	"github.com/deckhand-dev/deckhand/runner/tool"
)

// The names of the tools.
const (
	NameThink  = "Think"
	NameFinish = "Finish"
	NameReject = "Reject"
	NameAsk    = "Ask"
)

//go:embed think.md
var thinkPage string

type thinkIn struct {
	Thought string `json:"thought" jsonschema:"what to think about"`
}

// Think lets a model that has no thinking of its own reason between calls. It
// does nothing: the call is the record.
func Think() tool.Tool {
	spec := tool.Spec{
		Name: NameThink, Description: strings.TrimSpace(thinkPage),
		Effect: tool.ReadOnly, Concurrency: tool.Parallel,
	}
	return tool.Typed(spec, func(context.Context, tool.Call, thinkIn) (tool.Result, error) {
		return tool.Result{Text: "OK"}, nil
	})
}
