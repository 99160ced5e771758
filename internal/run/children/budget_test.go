package children

import (
	"math"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
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

// A child that works holds what was reserved for it, or what it used if that is more; one
// without a limit of its own may use all. A child that ended counts what it used.
func TestCharge(t *testing.T) {
	const limit = 1000
	used := func(tokens int64) func(*v1alpha1.Run) {
		return func(r *v1alpha1.Run) {
			r.Status.Progress = &v1alpha1.RunProgress{Usage: v1alpha1.Usage{TotalTokens: tokens}}
		}
	}
	ended := func(r *v1alpha1.Run) { r.Status.CompletionTime = &metav1.Time{Time: gen.Noon} }
	cases := map[string]struct {
		child       *v1alpha1.Run
		reservation int64
		used        int64
		reserved    int64
		active      int
	}{
		"one that has not begun":                 {gen.Run(), 400, 0, 400, 1},
		"one that used less than its part":       {gen.Run(used(100)), 400, 0, 400, 1},
		"one that used more than its part":       {gen.Run(used(700)), 400, 0, 700, 1},
		"one without a limit of its own":         {gen.Run(used(100)), 0, 0, limit, 1},
		"one that ended with less than its part": {gen.Run(used(100), ended), 400, 100, 0, 0},
		"one that ended with more than its part": {gen.Run(used(700), ended), 400, 700, 0, 0},
		"one that ended without a limit":         {gen.Run(used(100), ended), 0, 100, 0, 0},
		"one that ended before it worked":        {gen.Run(ended), 400, 0, 0, 0},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b := NewBudget(Amounts{Tokens: limit})
			b.Charge(tc.child, Amounts{Tokens: tc.reservation})
			if b.Used[Tokens] != tc.used || b.Reserved[Tokens] != tc.reserved || b.Active != tc.active {
				t.Errorf("used %d, reserved %d, %d active; want %d, %d, %d", b.Used[Tokens], b.Reserved[Tokens], b.Active, tc.used, tc.reserved, tc.active)
			}
			if got, want := b.Left(Tokens), max(0, limit-tc.used-tc.reserved); got != want {
				t.Errorf("%d are left, want %d", got, want)
			}
		})
	}
}

// The parts of children add up, and a resource without a limit reserves nothing.
func TestChargeOfSeveral(t *testing.T) {
	b := NewBudget(Amounts{Tokens: 1000})
	b.Charge(gen.Run(), Amounts{Tokens: 400, Steps: 5})
	b.Charge(gen.Run(), Amounts{Tokens: 300})
	if want := (Amounts{Tokens: 700, Steps: 5}); b.Reserved != want || b.Active != 2 {
		t.Errorf("reserved %v for %d, want %v for 2", b.Reserved, b.Active, want)
	}
	if _, enough := b.Reserve(Amounts{Tokens: 301}); enough {
		t.Error("more is reserved than is left")
	}
	if _, enough := b.Reserve(Amounts{Tokens: 300}); !enough {
		t.Error("what is left is not reserved")
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
