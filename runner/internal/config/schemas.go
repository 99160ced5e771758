package config

import (
	"context"
	"encoding/json"

	"github.com/deckhand-dev/deckhand/internal/schema"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// A portable tool has a schema that model providers accept, in place of its own. The arguments of
// its calls are validated with the same schema.
type portable struct {
	tool.Tool
	input   json.RawMessage
	changes []string
}

// withPortableSchemas returns tools whose schemas all providers accept. A provider refuses a whole
// request for the schema of one tool, even if the model never calls it.
func withPortableSchemas(tools []tool.Tool) []tool.Tool {
	all := make([]tool.Tool, len(tools))
	for i, t := range tools {
		all[i] = t
		input := t.Spec().Input
		if len(input) == 0 {
			continue
		}
		if repaired, changes := schema.Portable(input); len(changes) > 0 {
			all[i] = portable{Tool: t, input: repaired, changes: changes}
		}
	}
	return all
}

// Spec implements [tool.Tool].
func (p portable) Spec() tool.Spec {
	s := p.Tool.Spec()
	s.Input, s.SchemaChanges = p.input, p.changes
	return s
}

// EffectOf implements [tool.Classifier] for a tool that does.
func (p portable) EffectOf(args json.RawMessage) tool.Effect { return tool.EffectOf(p.Tool, args) }

// Canonical implements [tool.Canonicalizer] for a tool that does.
func (p portable) Canonical(ctx context.Context, args json.RawMessage) (json.RawMessage, *tool.Error) {
	return tool.Canonical(ctx, p.Tool, args)
}
