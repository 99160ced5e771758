package decisions_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/decisions"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

func TestTheNextNameIsFree(t *testing.T) {
	cases := map[string]struct {
		taken []string
		want  string
	}{
		"the first":                    {nil, "x.s3c1"},
		"after one":                    {[]string{"x.s3c1"}, "x.s3c1.2"},
		"after three":                  {[]string{"x.s3c1.3", "x.s3c1", "x.s3c1.2"}, "x.s3c1.4"},
		"where one in between is free": {[]string{"x.s3c1", "x.s3c1.3"}, "x.s3c1.2"},
		"where one has another ending": {[]string{"x.s3c1.again"}, "x.s3c1"},
		"of another request":           {[]string{"x.s3c10", "x.s3c2"}, "x.s3c1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := decisions.FreeName("x", "s3c1", tc.taken); got != tc.want || slices.Contains(tc.taken, got) {
				t.Errorf("FreeName() = %s, want %s", got, tc.want)
			}
		})
	}
}

func TestARefusedDecisionNamesTheNext(t *testing.T) {
	question := v1alpha1.PendingRequest{ID: "s3c1", Kind: task.PendingQuestion}
	limit := v1alpha1.PendingRequest{ID: "limit-steps-1", Kind: task.PendingLimit}
	child := v1alpha1.PendingRequest{ID: "s2c1", Kind: task.PendingDelegation}
	named := func(d *v1alpha1.Decision, name string) *v1alpha1.Decision { d.Name = name; return d }
	cases := map[string]struct {
		run      *v1alpha1.Run
		decision *v1alpha1.Decision
		taken    []string
		want     string
	}{
		"on a request":                  {runWithRequests(question, limit), named(decision(v1alpha1.DecisionGrant, "s3c1"), "x.s3c1"), nil, ". Create Decision x.s3c1.2"},
		"where the next is taken too":   {runWithRequests(question), named(decision(v1alpha1.DecisionGrant, "s3c1"), "x.s3c1"), []string{"x.s3c1", "x.s3c1.2"}, ". Create Decision x.s3c1.3"},
		"of any name, on the only one":  {runWithRequests(question, child), decision(v1alpha1.DecisionGrant, ""), nil, ". Create Decision x.s3c1"},
		"on what is not asked any more": {runWithRequests(question), named(decision(v1alpha1.DecisionAnswer, "s2c1"), "x.s2c1"), nil, ". Create Decision x.s3c1"},
		"on one of several":             {runWithRequests(question, limit), decision(v1alpha1.DecisionAnswer, "s9c9"), nil, ""},
		"on nothing":                    {runWithRequests(), decision(v1alpha1.DecisionAnswer, "s3c1"), nil, ""},
		"a message":                     {runWithRequests(question), decision(v1alpha1.DecisionMessage, ""), nil, ""},
		"for an earlier Run":            {runWithRequests(question), owned(decision(v1alpha1.DecisionAnswer, "s3c1"), "another"), nil, ""},
		"for a finished Run":            {finished(runWithRequests(question)), decision(v1alpha1.DecisionAnswer, "s3c1"), nil, ""},
		"for no Run":                    {nil, decision(v1alpha1.DecisionAnswer, "s3c1"), nil, ""},
		"for one that has not reported": {gen.Run(), decision(v1alpha1.DecisionAnswer, "s3c1"), nil, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := decisions.NextStep(tc.run, tc.decision, tc.taken); got != tc.want {
				t.Errorf("NextStep() = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestOnlyFinalDecisionsTakeANameFromTheQuestion(t *testing.T) {
	settled := func(name string, status metav1.ConditionStatus) v1alpha1.Decision {
		d := decision(v1alpha1.DecisionAnswer, "s3c1")
		d.Name = name
		d.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionApplied, Status: status}}
		return *d
	}
	all := []v1alpha1.Decision{settled("a", metav1.ConditionFalse), settled("b", metav1.ConditionUnknown), settled("c", metav1.ConditionTrue)}
	if got := decisions.FinalNames(all); !slices.Equal(got, []string{"a", "c"}) {
		t.Errorf("FinalNames() = %v", got)
	}
	for _, e := range []struct {
		was, is v1alpha1.Decision
		want    bool
	}{{all[1], all[0], true}, {all[0], all[0], false}, {all[1], all[1], false}} {
		if got := decisions.BecameFinal.Update(event.UpdateEvent{ObjectOld: &e.was, ObjectNew: &e.is}); got != e.want {
			t.Errorf("from %s to %s: %t", e.was.Name, e.is.Name, got)
		}
	}
}
