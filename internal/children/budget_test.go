package children

import (
	"math"
	"testing"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/gen"
)

// budgetOf returns a budget with a limit on tokens.
func budgetOf(limit, used, reserved int64, active int) *Budget {
	b := &Budget{Active: active}
	b.Limit[Tokens], b.Bounded[Tokens], b.Used[Tokens], b.Reserved[Tokens] = limit, true, used, reserved
	return b
}

func TestReserve(t *testing.T) {
	cases := map[string]struct {
		budget *Budget
		want   int64
		grant  int64
		enough bool
	}{
		"there is enough":                        {budgetOf(1000, 100, 300, 1), 500, 500, true},
		"too little while others are active":     {budgetOf(1000, 100, 300, 1), 700, 0, false},
		"what is left if no other is active":     {budgetOf(1000, 600, 0, 0), 700, 400, true},
		"no limit of its own takes what is left": {budgetOf(1000, 600, 0, 0), 0, 400, true},
		"and waits while others are active":      {budgetOf(1000, 0, 100, 1), 0, 0, false},
		"nothing is left":                        {budgetOf(1000, 1000, 0, 0), 1, 0, false},
		"more was used than there was":           {budgetOf(1000, 1200, 0, 0), 1, 0, false},
		"the limit is below zero":                {budgetOf(-5, 0, 0, 0), 1, 0, false},
		"no more than a Run's limits can say":    {budgetOf(1<<60, 0, 0, 0), 0, maxLimits[Tokens], true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			grant, enough := tc.budget.Reserve(Amounts{Tokens: tc.want})
			if enough != tc.enough || enough && grant[Tokens] != tc.grant {
				t.Errorf("Reserve(%d) = %d, %t, want %d, %t", tc.want, grant[Tokens], enough, tc.grant, tc.enough)
			}
		})
	}
}

// What nobody knows the price of counts as all that was reserved for it.
func TestUnknownCostCountsWhole(t *testing.T) {
	c := gen.Run()
	if got := UsedBy(c, Amounts{Cost: 500}); got != (Amounts{}) {
		t.Errorf("one that never worked used %v", got)
	}
	c.Status.Progress = &v1alpha1.RunProgress{Usage: v1alpha1.Usage{TotalTokens: 10}}
	if got := UsedBy(c, Amounts{Cost: 500}); got != (Amounts{Tokens: 10, Cost: 500}) {
		t.Errorf("one without prices used %v", got)
	}
}

// A custom runner may report any numbers.
func TestUsageOfAnyNumbers(t *testing.T) {
	for reported, want := range map[int64]int64{-5: 0, math.MinInt64: 0, 7: 7, math.MaxInt64: v1alpha1.MaxUsage} {
		p := &v1alpha1.RunProgress{Usage: v1alpha1.Usage{TotalTokens: reported, CostMicroUSD: &reported}}
		if got := UsageOf(p); got != (Amounts{Tokens: want, Cost: want}) {
			t.Errorf("%d counts as %v, want %d", reported, got, want)
		}
	}
}
