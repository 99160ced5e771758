package run

import (
	"testing"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// A Run without the fields has the budgets that their descriptions say, and zero is no absence.
func TestBudgetsOfARunHaveDefaults(t *testing.T) {
	of := func(number *int32) *v1alpha1.Run {
		return gen.Run(func(r *v1alpha1.Run) { r.Spec.MaxRetries, r.Spec.MaxDisruptions = number, number })
	}
	for name, tc := range map[string]struct {
		run                  *v1alpha1.Run
		retries, disruptions int32
	}{
		"absent": {of(nil), 1, 10},
		"zero":   {of(new(int32(0))), 0, 0},
		"four":   {of(new(int32(4))), 4, 4},
	} {
		if r, d := budgetLimit(tc.run, budgetRetries), budgetLimit(tc.run, budgetDisruptions); r != tc.retries || d != tc.disruptions {
			t.Errorf("%s: %d retries and %d disruptions, want %d and %d", name, r, d, tc.retries, tc.disruptions)
		}
	}
}
