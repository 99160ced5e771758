package catalog

import (
	"strings"

	"github.com/deckhand-dev/deckhand/internal/shared/modelfacts"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// Takes returns which kinds of parts a model takes. A model that the table of facts does not have is
// sent images and documents: its provider refuses them if it takes none.
func Takes(model string) func(step.PartKind) bool {
	row, isBlind := modelfacts.TakesNoImages(strings.ReplaceAll(canonical(model), ":", "-"))
	return func(kind step.PartKind) bool {
		switch kind {
		case step.PartImage:
			return !isBlind
		case step.PartDocument:
			return !isBlind || row.PDF == modelfacts.Yes
		default:
			return true
		}
	}
}
