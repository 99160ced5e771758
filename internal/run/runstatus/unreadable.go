package runstatus

import (
	"fmt"

	"github.com/deckhand-dev/deckhand/internal/revision/stored"
)

// UnreadableRevision returns the message of a Run whose stored revision, of an Agent or a Workflow,
// this operator does not understand.
func UnreadableRevision(kind, name string, e *stored.UnsupportedError) string {
	do := "Upgrade the operator: the Run then continues"
	if !e.IsNewer() {
		do = "Create a new Run"
	}
	return fmt.Sprintf("Cannot read the revision of %s %s that this Run started with: %v. %s", kind, name, e, do)
}
