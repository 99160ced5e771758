package catalog

import (
	"strings"

	"github.com/deckhand-dev/deckhand/internal/shared/modelfacts"
	"github.com/deckhand-dev/deckhand/runner/step"
)

// Takes returns a function that reports which kinds of parts a model accepts. A model that is not in the table of facts
// is sent images and documents: its provider refuses them if it accepts none.
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
