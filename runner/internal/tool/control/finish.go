package control

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/deckhand-dev/deckhand/internal/shared/schema"
	"github.com/deckhand-dev/deckhand/runner/internal/tool/facts"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

//go:embed finish.md
var finishPage string

//go:embed finish_output.md
var finishOutputPage string

type finishIn struct {
	Text string `json:"text" jsonschema:"the result, for the user"`
}

// Finish ends a Run with a text.
func Finish() tool.Tool {
	return tool.Typed(ending(NameFinish, finishPage), func(_ context.Context, _ tool.Call, in finishIn) (tool.Result, error) {
		return tool.Result{Text: in.Text}, nil
	})
}

// FinishWith ends a Run with a value of the schema, which is the schema of the
// tool's own arguments: the model fills it in as it fills in any call.
func FinishWith(output json.RawMessage) (tool.Tool, error) {
	if err := schema.Check(output); err != nil {
		return tool.Tool{}, fmt.Errorf("using the output schema: %w", err)
	}
	spec := ending(NameFinish, finishOutputPage)
	spec.Input = output
	return tool.Typed(spec, func(_ context.Context, _ tool.Call, value json.RawMessage) (tool.Result, error) {
		var compact bytes.Buffer
		if err := json.Compact(&compact, value); err != nil {
			return tool.Result{}, fmt.Errorf("compacting the output: %w", err)
		}
		return tool.Result{Text: compact.String(), Output: compact.Bytes()}, nil
	}), nil
}

// ending is the Spec of a tool that ends the Run. Its effect is in the journal
// alone, so to run it again is harmless.
func ending(name, page string) tool.Spec {
	return tool.Spec{
		Name: name, Description: strings.TrimSpace(page),
		Effect: tool.Idempotent, Concurrency: tool.Sequential, Internal: facts.Facts{Ends: true}.Internal(),
	}
}
