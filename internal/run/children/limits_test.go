package children

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

func TestAmounts(t *testing.T) {
	a, b := Amounts{1, 20, 0, 4}, Amounts{10, 2, 3, 4}
	for name, tc := range map[string]struct{ got, want Amounts }{
		"the lowest limit, of which 0 is none":    {Lowest(a, b), Amounts{1, 2, 3, 4}},
		"and in the other order":                  {Lowest(b, a), Amounts{1, 2, 3, 4}},
		"a sum":                                   {a.Plus(b), Amounts{11, 22, 3, 8}},
		"a difference is at least 0":              {a.Minus(b), Amounts{0, 18, 0, 0}},
		"the highest":                             {a.Max(b), Amounts{10, 20, 3, 4}},
		"no limits":                               {LimitsOf(nil), Amounts{}},
		"no limits of a Workflow":                 {WorkflowLimits(nil), Amounts{}},
		"a Workflow's limits":                     {WorkflowLimits(&v1alpha1.WorkflowLimits{Steps: new(int32(7))}), Amounts{Steps: 7}},
		"what is left is neither used, nor taken": {leftOf(&Budget{Limit: Amounts{10, 10, 10, 10}, Used: Amounts{1, 2, 3, 14}, Reserved: Amounts{1}}), Amounts{8, 8, 7, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.got != tc.want {
				t.Errorf("%v, want %v", tc.got, tc.want)
			}
		})
	}
}

func leftOf(b *Budget) (out Amounts) {
	for r := range Resources {
		out[r] = b.Left(r)
	}
	return out
}

func TestExhausted(t *testing.T) {
	for name, tc := range map[string]struct {
		used  Amounts
		first Resource
		is    bool
	}{
		"nothing is used":                      {Amounts{}, Resources, false},
		"one less than the limit is used":      {Amounts{Tokens: 9}, Resources, false},
		"the limit is used":                    {Amounts{Tokens: 10}, Tokens, true},
		"more than the limit is used":          {Amounts{Duration: 11}, Duration, true},
		"a resource without a limit is used":   {Amounts{Cost: 1000}, Resources, false},
		"of two limits, the first is returned": {Amounts{Steps: 10, Tokens: 10}, Steps, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewBudget(Amounts{Steps: 10, Tokens: 10, Duration: 10})
			b.Use(tc.used)
			if first, is := b.Exhausted(); first != tc.first || is != tc.is {
				t.Errorf("exhausted is %d, %t; want %d, %t", first, is, tc.first, tc.is)
			}
		})
	}
}

// A child has its own limits, lowered to its part, and none on what no limit bounds.
func TestLimitsFor(t *testing.T) {
	grant := Amounts{Steps: 99_999, Tokens: 1000, Cost: 1_500_000, Duration: 90}
	all := &v1alpha1.Limits{Steps: new(int32(10_000)), Tokens: new(v1alpha1.Tokens("1000")), Cost: new(v1alpha1.Money("1.50USD")), Duration: new(v1alpha1.Duration("90s"))}
	for name, tc := range map[string]struct {
		limit Amounts
		own   *v1alpha1.Limits
		want  *v1alpha1.Limits
	}{
		"no limit at all":              {Amounts{}, nil, nil},
		"a limit on each resource":     {Amounts{1, 1, 1, 1}, nil, all},
		"its own limit is lowered":     {Amounts{Tokens: 1}, &v1alpha1.Limits{Tokens: new(v1alpha1.Tokens("5M"))}, &v1alpha1.Limits{Tokens: all.Tokens}},
		"its own limit alone stays":    {Amounts{}, &v1alpha1.Limits{Steps: new(int32(3))}, &v1alpha1.Limits{Steps: new(int32(3))}},
		"both limits are of the child": {Amounts{Duration: 1}, &v1alpha1.Limits{Steps: new(int32(3))}, &v1alpha1.Limits{Steps: new(int32(3)), Duration: all.Duration}},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.own.DeepCopy()
			if diff := cmp.Diff(tc.want, NewBudget(tc.limit).LimitsFor(tc.own, grant)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(before, tc.own); diff != "" {
				t.Errorf("the child's own were changed:\n%s", diff)
			}
		})
	}
}

// What a child may use is reserved of each limit, or of none.
func TestReserveOfSeveralResources(t *testing.T) {
	b := NewBudget(Amounts{Steps: 10, Tokens: 100})
	grant, enough := b.Reserve(Amounts{Steps: 4, Tokens: 60, Cost: 7})
	if want := (Amounts{Steps: 4, Tokens: 60, Cost: 7}); !enough || grant != want || b.Reserved != want || b.Active != 1 {
		t.Errorf("granted %v, %t, reserved %v for %d", grant, enough, b.Reserved, b.Active)
	}
	before := *b
	if _, enough := b.Reserve(Amounts{Steps: 4, Tokens: 60}); enough || *b != before {
		t.Errorf("more than is left was reserved: %+v", b)
	}
}

func TestResourcesInMessages(t *testing.T) {
	for r, want := range map[Resource][3]string{
		Steps:    {v1alpha1.ReasonStepLimit, "limits.steps", "90"},
		Tokens:   {v1alpha1.ReasonTokenLimit, "limits.tokens", "90"},
		Cost:     {v1alpha1.ReasonCostLimit, "limits.cost", "0.00009USD"},
		Duration: {v1alpha1.ReasonDurationLimit, "limits.duration", "1m30s"},
	} {
		if got := [3]string{r.Reason(), r.Field(), r.Format(90)}; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
