package workflowrun

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/gen"
)

func rawOf(data []byte) *runtime.RawExtension { return &runtime.RawExtension{Raw: data} }

// purseWith is a purse with a limit on tokens alone.
func purseWith(limit, used, aside int64, active int) *purse {
	p := &purse{active: active}
	p.limit[byTokens], p.bounded[byTokens], p.used[byTokens], p.aside[byTokens] = limit, true, used, aside
	return p
}

func TestSettingAside(t *testing.T) {
	cases := map[string]struct {
		purse  *purse
		want   int64
		grant  int64
		enough bool
	}{
		"there is enough":                        {purseWith(1000, 100, 300, 1), 500, 500, true},
		"too little while others work":           {purseWith(1000, 100, 300, 1), 700, 0, false},
		"what is left where nobody works":        {purseWith(1000, 600, 0, 0), 700, 400, true},
		"no limit of its own takes what is left": {purseWith(1000, 600, 0, 0), 0, 400, true},
		"and waits while others work":            {purseWith(1000, 0, 100, 1), 0, 0, false},
		"nothing is left":                        {purseWith(1000, 1000, 0, 0), 1, 0, false},
		"more was used than there was":           {purseWith(1000, 1200, 0, 0), 1, 0, false},
		"finally's part is more than there is":   {purseWith(-5, 0, 0, 0), 1, 0, false},
		"no more than a Run's limits can say":    {purseWith(1<<60, 0, 0, 0), 0, most[byTokens], true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			grant, enough := tc.purse.set(amounts{byTokens: tc.want})
			if enough != tc.enough || enough && grant[byTokens] != tc.grant {
				t.Errorf("set(%d) = %d, %t, want %d, %t", tc.want, grant[byTokens], enough, tc.grant, tc.enough)
			}
		})
	}
}

func TestPartOfFinally(t *testing.T) {
	five := v1alpha1.Duration("5m")
	said, much := v1alpha1.Tokens("70"), v1alpha1.Tokens("5000")
	cases := map[string]struct {
		whole amounts
		said  *v1alpha1.WorkflowLimits
		want  amounts
		nodes []v1alpha1.Node
	}{
		"without limits ten minutes":          {whole: amounts{}, want: amounts{byDuration: 600}},
		"and as much for each of several":     {whole: amounts{}, want: amounts{byDuration: 1800}, nodes: make([]v1alpha1.Node, 3)},
		"a tenth of what is limited":          {whole: amounts{100, 1000, 50, 7200}, want: amounts{10, 100, 5, 600}},
		"half of a short duration at most":    {whole: amounts{byDuration: 300}, want: amounts{byDuration: 150}},
		"something of the least":              {whole: amounts{1, 1, 1, 1}, want: amounts{1, 1, 1, 1}},
		"no more than the whole":              {whole: amounts{byTokens: 1000}, said: &v1alpha1.WorkflowLimits{Tokens: &much}, want: amounts{byTokens: 1000, byDuration: 600}},
		"what is said, and a tenth of others": {whole: amounts{100, 1000, 0, 0}, said: &v1alpha1.WorkflowLimits{Tokens: &said, Duration: &five}, want: amounts{10, 70, 0, 300}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := forFinally(tc.whole, v1alpha1.WorkflowSpec{FinallyLimits: tc.said, Finally: tc.nodes}); got != tc.want {
				t.Errorf("forFinally() = %v, want %v", got, tc.want)
			}
		})
	}
}

// None of finally keeps another from running by taking all the time there is.
func TestNodesOfFinallyRunBesideEachOther(t *testing.T) {
	c := newCluster(whole(t, `
nodes: [{name: a, agent: worker, prompt: x}]
finally:
- {name: tell, agent: writer, prompt: x}
- {name: clean, agent: writer, prompt: x}
`))
	c.step()
	c.step()
	ends("x-a", 1)(c)
	c.step()
	for _, name := range []string{"x-tell", "x-clean"} {
		if l := c.child(name).Spec.Limits; l == nil || l.Duration == nil || *l.Duration != "600s" {
			t.Errorf("%s has %+v", name, l)
		}
	}
}

// What nobody knows the price of counts as all that was set aside for it.
func TestUnknownCostCountsWhole(t *testing.T) {
	c := gen.Run()
	if got := used(c, amounts{byCost: 500}); got != (amounts{}) {
		t.Errorf("one that never worked used %v", got)
	}
	c.Status.Progress = &v1alpha1.RunProgress{Usage: v1alpha1.Usage{TotalTokens: 10}}
	if got := used(c, amounts{byCost: 500}); got != (amounts{byTokens: 10, byCost: 500}) {
		t.Errorf("one without prices used %v", got)
	}
}

// A Run may lower the limits of its Workflow, and its children's with them.
func TestRunLowersTheLimitsOfItsWorkflow(t *testing.T) {
	tokens := v1alpha1.Tokens("50")
	c := newCluster(whole(t, "limits: {tokens: 1000}\n"+pipeline), func(r *v1alpha1.Run) { r.Spec.Limits = &v1alpha1.Limits{Tokens: &tokens} })
	c.step()
	c.step()
	if l := c.child("x-a").Spec.Limits; l == nil || *l.Tokens != "50" {
		t.Errorf("the child has %+v", l)
	}
}
