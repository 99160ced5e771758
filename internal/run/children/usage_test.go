package children

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// used returns a Run with a usage.
func used(u v1alpha1.Usage) *v1alpha1.Run {
	return gen.Run(func(r *v1alpha1.Run) { r.Status.Progress = &v1alpha1.RunProgress{Usage: u} })
}

func TestUsedBy(t *testing.T) {
	reservation := Amounts{Tokens: 100, Cost: 500}
	for name, tc := range map[string]struct {
		usage v1alpha1.Usage
		want  Amounts
	}{
		"a known cost counts":                           {v1alpha1.Usage{TotalTokens: 10, CostMicroUSD: new(int64(3))}, Amounts{Tokens: 10, Cost: 3}},
		"a cost that is known to be none counts so":     {v1alpha1.Usage{TotalTokens: 10, CostMicroUSD: new(int64(0))}, Amounts{Tokens: 10}},
		"an unknown cost is all that was reserved":      {v1alpha1.Usage{TotalTokens: 1}, Amounts{Tokens: 1, Cost: 500}},
		"a child without a model call has cost nothing": {v1alpha1.Usage{DurationSeconds: 7}, Amounts{Duration: 7}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := UsedBy(used(tc.usage), reservation); got != tc.want {
				t.Errorf("it used %v, want %v", got, tc.want)
			}
		})
	}
}

func TestChildUsageOf(t *testing.T) {
	for name, tc := range map[string]struct {
		usage v1alpha1.Usage
		want  Amounts
		known bool
	}{
		"no children":                      {v1alpha1.Usage{TotalTokens: 10}, Amounts{}, false},
		"a cost of a runner that is older": {v1alpha1.Usage{ChildCostMicroUSD: new(int64(3))}, Amounts{}, false},
		"tokens without a cost":            {v1alpha1.Usage{ChildTokens: new(int64(4))}, Amounts{Tokens: 4}, true},
		"no tokens yet":                    {v1alpha1.Usage{ChildTokens: new(int64(0))}, Amounts{}, true},
		"tokens and cost":                  {v1alpha1.Usage{ChildTokens: new(int64(4)), ChildCostMicroUSD: new(int64(3))}, Amounts{Tokens: 4, Cost: 3}, true},
		"numbers that cannot be":           {v1alpha1.Usage{ChildTokens: new(int64(-4)), ChildCostMicroUSD: new(int64(math.MaxInt64))}, Amounts{Cost: v1alpha1.MaxUsage}, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, known := ChildUsageOf(&v1alpha1.RunProgress{Usage: tc.usage})
			if got != tc.want || known != tc.known {
				t.Errorf("the children used %v, known %t; want %v, %t", got, known, tc.want, tc.known)
			}
		})
	}
}

func TestAddTo(t *testing.T) {
	more := Amounts{Steps: 1, Tokens: 20, Cost: 300, Duration: 4000}
	p := v1alpha1.RunProgress{Counts: v1alpha1.Counts{Steps: 5}, Usage: v1alpha1.Usage{TotalTokens: 5, DurationSeconds: 5, CostMicroUSD: new(int64(5))}}
	more.AddTo(&p)
	want := v1alpha1.RunProgress{Counts: v1alpha1.Counts{Steps: 6}, Usage: v1alpha1.Usage{TotalTokens: 25, DurationSeconds: 4005, CostMicroUSD: new(int64(305))}}
	if diff := cmp.Diff(want, p); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	p = v1alpha1.RunProgress{}
	if more.AddTo(&p); p.Usage.CostMicroUSD != nil {
		t.Error("an unknown cost became known")
	}
}

// The cost of all is known if it is known of each child that asked a model.
func TestCostOfChildren(t *testing.T) {
	priced := used(v1alpha1.Usage{InputTokens: 1, CostMicroUSD: new(int64(3))})
	for name, tc := range map[string]struct {
		children []*v1alpha1.Run
		want     *int64
	}{
		"no children":                            {nil, new(int64(0))},
		"costs add up":                           {[]*v1alpha1.Run{priced, priced}, new(int64(6))},
		"a child that has not begun":             {[]*v1alpha1.Run{gen.Run(), priced}, new(int64(3))},
		"a child that asked no model":            {[]*v1alpha1.Run{used(v1alpha1.Usage{}), priced}, new(int64(3))},
		"a child without a price, by its input":  {[]*v1alpha1.Run{used(v1alpha1.Usage{InputTokens: 1}), priced}, nil},
		"a child without a price, by its output": {[]*v1alpha1.Run{priced, used(v1alpha1.Usage{OutputTokens: 1})}, nil},
		"a cost that cannot be":                  {[]*v1alpha1.Run{used(v1alpha1.Usage{CostMicroUSD: new(int64(math.MaxInt64))}), priced}, new(int64(v1alpha1.MaxUsage))},
	} {
		t.Run(name, func(t *testing.T) {
			var got v1alpha1.RunProgress
			AddUsage(tc.children, &got)
			if diff := cmp.Diff(tc.want, got.Usage.CostMicroUSD); diff != "" {
				t.Errorf("cost -want +got:\n%s", diff)
			}
		})
	}
}

// Each number of the children is added to its own, within its bound, and what they changed is kept.
func TestAddUsage(t *testing.T) {
	progress := func(first int64, effects v1alpha1.Effects) *v1alpha1.RunProgress {
		p := &v1alpha1.RunProgress{Effects: effects}
		for i, c := range counters(p) {
			*c.n = first + int64(i)
		}
		p.Usage.CostMicroUSD = new(int64(0))
		return p
	}
	a, b, idle := gen.Run(), gen.Run(), gen.Run()
	a.Status.Progress, b.Status.Progress, idle.Status.Progress = progress(10, "Changes"), progress(200, ""), &v1alpha1.RunProgress{}
	got := v1alpha1.RunProgress{}
	AddUsage([]*v1alpha1.Run{a, b, idle}, &got)
	want := progress(0, "Changes")
	for i, c := range counters(want) {
		*c.n = 210 + 2*int64(i)
	}
	if diff := cmp.Diff(*want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for i, c := range counters(progress(math.MaxInt64-100, "")) {
		if c.bound(*c.n) != c.bound(math.MaxInt64) {
			t.Errorf("number %d has no bound", i)
		}
	}
}

func TestKeepUsage(t *testing.T) {
	was := v1alpha1.RunProgress{Counts: v1alpha1.Counts{Steps: 5, ToolCalls: 1}, Usage: v1alpha1.Usage{DurationSeconds: 90, CostMicroUSD: new(int64(2_000_000))}}
	for name, tc := range map[string]struct {
		cost, before *int64
		want         string
	}{
		"a lower cost is raised":         {new(int64(1)), was.Usage.CostMicroUSD, "2.00USD"},
		"a higher cost stays":            {new(int64(3_000_000)), was.Usage.CostMicroUSD, "3.00USD"},
		"a cost that is known now stays": {new(int64(1_000_000)), nil, "1.00USD"},
		"an unknown cost stays unknown":  {nil, was.Usage.CostMicroUSD, ""},
	} {
		t.Run(name, func(t *testing.T) {
			p := v1alpha1.RunProgress{Counts: v1alpha1.Counts{Steps: 3, ToolCalls: 2}}
			before := was
			p.Usage.CostMicroUSD, before.Usage.CostMicroUSD = tc.cost, tc.before
			KeepUsage(&p, before)
			if p.Counts.Steps != 5 || p.Counts.ToolCalls != 2 || p.Usage.Duration != "1m30s" {
				t.Errorf("%+v %+v", p.Counts, p.Usage)
			}
			if p.Usage.Cost != tc.want {
				t.Errorf("cost %q, want %q", p.Usage.Cost, tc.want)
			}
		})
	}
}
