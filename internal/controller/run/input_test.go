package run

import (
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A Run that limits its cost ends before it has a pod if the cost cannot be counted.
func TestARunWhoseCostCannotBeCountedHasNoPod(t *testing.T) {
	cost := v1alpha1.Money("1USD")
	s := state{
		run:      gen.Run(func(r *v1alpha1.Run) { r.Spec.Limits = &v1alpha1.Limits{Cost: &cost} }),
		revision: &snapshot.Revision{Snapshot: task.Snapshot{Models: []task.Model{{Name: "free"}}}},
	}
	p, applies := inputInvalid(s)
	if !applies || p.reason != v1alpha1.ReasonMisconfigured || !strings.HasPrefix(p.message, `spec.limits.cost needs to know what Model "free" costs.`) {
		t.Errorf("%t %s: %s", applies, p.reason, p.message)
	}
	s.revision.Snapshot.Models[0].Prices = &task.Prices{}
	if p, applies := inputInvalid(s); applies {
		t.Errorf("%s: %s", p.reason, p.message)
	}
}
