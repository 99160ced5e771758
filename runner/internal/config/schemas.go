package config

import (
	"slices"

	"github.com/deckhand-dev/deckhand/internal/shared/schema"
	"github.com/deckhand-dev/deckhand/runner/tool"
)

// withPortableSchemas returns tools whose schemas all providers accept: calls are validated with
// these, too. A provider refuses a whole request for the schema of one tool, even if the model
// never calls it.
func withPortableSchemas(tools []tool.Tool) []tool.Tool {
	all := slices.Clone(tools)
	for i, t := range all {
		if len(t.Input) == 0 {
			continue
		}
		repaired, changes := schema.Portable(t.Input)
		if len(changes) == 0 {
			continue
		}
		known := t.Internal.Facts()
		known.SchemaChanges = changes
		all[i].Input, all[i].Internal = repaired, known.Internal()
	}
	return all
}
