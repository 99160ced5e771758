package cli

import (
	"fmt"
	"strings"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// chainOf returns the names of the Runs that a Run continues, the last first. Before its first attempt only that of
// its spec is known.
func chainOf(run *v1alpha1.Run) []string {
	switch {
	case run.Status.ContinuedFrom != nil:
		return run.Status.ContinuedFrom.Runs
	case run.Spec.ContinueFrom != nil:
		return []string{run.Spec.ContinueFrom.Run}
	}
	return nil
}

// chainText returns the names of the Runs that a Run continues, with what they used; empty: it continues none.
func chainText(run *v1alpha1.Run) string {
	names := chainOf(run)
	if len(names) == 0 {
		return ""
	}
	text := strings.Join(names, ", ")
	if from := run.Spec.ContinueFrom; from != nil && from.Step != nil {
		text = fmt.Sprintf("%s up to step %d", names[0], *from.Step)
		if len(names) > 1 {
			text += ", " + strings.Join(names[1:], ", ")
		}
	}
	before := run.Status.ContinuedFrom
	if before == nil {
		return text
	}
	used := fmt.Sprintf("%d tokens", before.TotalTokens)
	if before.Cost != "" {
		used += ", " + before.Cost
	}
	return text + " (" + used + " before it)"
}
