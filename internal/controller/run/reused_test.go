package run

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// reusing makes a Run a part of a workflow that is retried, with the result of the Run before.
func reusing(r *v1alpha1.Run) {
	r.Spec.ContinueFrom = &v1alpha1.ContinueFrom{Run: "before"}
	r.Annotations = map[string]string{v1alpha1.AnnotationReuseOf: "uid-before"}
	r.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(gen.Run(func(p *v1alpha1.Run) { p.Name = "parent" }), v1alpha1.GroupVersion.WithKind("Run"))}
}

// A reused result is taken over at once, whatever else is in the way: no pod is created, and no queue is waited for.
func TestAReusedRunEndsAtOnce(t *testing.T) {
	before := gen.Run(func(r *v1alpha1.Run) {
		r.Name, r.UID = "before", "uid-before"
		r.Status.Progress = &v1alpha1.RunProgress{
			Counts: v1alpha1.Counts{Steps: 9}, Usage: v1alpha1.Usage{TotalTokens: 700},
			Result: &v1alpha1.Result{Committed: true, Reason: v1alpha1.ReasonFinished, Text: "done", Output: `{"n":1}`, Published: &v1alpha1.Published{Branch: "deckhand/before"}},
		}
	})
	for name, change := range map[string]func(*state){
		"nothing is in the way":      func(*state) {},
		"the Agent does not exist":   func(s *state) { s.revision = nil },
		"policies are missing":       func(s *state) { s.missingPolicies = "ValidatingAdmissionPolicy x" },
		"it is to be paused":         func(s *state) { s.run.Spec.DesiredState = v1alpha1.DesiredPaused },
		"its source cannot be found": func(s *state) { s.source.Run = nil },
	} {
		t.Run(name, func(t *testing.T) {
			s := newCluster(t, gen.Run(reusing), gen.Agent()).observed()
			s.reusedRun = before
			change(&s)
			p := decide(s)
			got := statusOf(s, p)
			if o := runstatus.OutcomeOf(got); o.Reason != v1alpha1.ReasonReused || o.Status != metav1.ConditionTrue || got.CompletionTime == nil || p.create != nil || p.nextAttempt != nil {
				t.Errorf("the Run is %+v, the plan %+v", o, p)
			}
			if r := got.Progress; r == nil || r.Result.Output != `{"n":1}` || r.Result.Published.Branch != "deckhand/before" || r.Usage.TotalTokens != 0 || r.Counts.Steps != 0 {
				t.Errorf("its progress is %+v", r)
			}
		})
	}
	s := newCluster(t, gen.Run(reusing), gen.Agent()).observed()
	if p := decide(s); p.reason != v1alpha1.ReasonNothingToContinue || p.outcome != metav1.ConditionFalse || p.reusedProgress != nil {
		t.Errorf("without the result the Run is %s: %s", p.reason, p.message)
	}
	s = newCluster(t, gen.Run(reusing, func(r *v1alpha1.Run) { r.Labels = map[string]string{"velero.io/restore-name": "nightly"} }), gen.Agent()).observed()
	s.reusedRun = before
	if p := decide(s); p.reason != v1alpha1.ReasonRestored {
		t.Errorf("a restored Run is %s: %s", p.reason, p.message)
	}
}
