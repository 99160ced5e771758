package run

import (
	"github.com/deckhand-dev/deckhand/internal/run/children"
)

// reused ends a child Run of a workflow that is retried, because its work was done before: it has that result.
func reused(s state) (plan, bool) {
	if children.ReuseOf(s.run) == "" {
		return plan{}, false
	}
	outcome, progress := children.Reuse(s.run, s.reusedRun)
	p := plan{reusedProgress: progress}
	return p.withOutcome(outcome), true
}
