package schedule

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/calendar"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// A Schedule creates Runs that wait if their Agent does not exist: its message says so, and it looks
// again soon.
func TestTheMessageNamesAnAgentOrWorkflowThatDoesNotExist(t *testing.T) {
	auditor := gen.Agent(func(a *v1alpha1.Agent) { a.Name, a.ResourceVersion = "auditor", "" })
	flow := &v1alpha1.Workflow{ObjectMeta: metav1.ObjectMeta{Namespace: gen.Namespace, Name: "audit"}}
	ofFlow := func(s *v1alpha1.Schedule) { s.Spec.RunTemplate.Spec = v1alpha1.RunSpec{Workflow: "audit"} }
	for name, tc := range map[string]struct {
		schedule *v1alpha1.Schedule
		objects  []client.Object
		want     string
	}{
		"an Agent that exists":          {nightly(), []client.Object{auditor}, ""},
		"an Agent that does not":        {nightly(), []client.Object{flow}, "Agent auditor not found, so that its Runs wait: create it, or correct spec.runTemplate.spec. "},
		"a Workflow that exists":        {nightly(ofFlow), []client.Object{flow}, ""},
		"a Workflow that does not":      {nightly(ofFlow), []client.Object{auditor}, "Workflow audit not found, so that its Runs wait"},
		"a spec that is not kept":       {nightly(func(s *v1alpha1.Schedule) { s.Spec.RunTemplate = v1alpha1.RunTemplate{} }), nil, ""},
		"an Agent in another namespace": {nightly(func(s *v1alpha1.Schedule) { s.Namespace = "other" }), []client.Object{auditor}, "Agent auditor not found"},
	} {
		scheme := runtime.NewScheme()
		if err := v1alpha1.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(tc.objects...).Build()
		r := New(c, c, nil, func() time.Time { return gen.Noon })
		o := state{schedule: tc.schedule, now: gen.Noon}
		var err error
		if o.missing, err = r.missing(t.Context(), tc.schedule); err != nil {
			t.Fatal(err)
		}
		if o.calendar, err = calendar.Read(tc.schedule.Spec.Schedule, ""); err != nil {
			t.Fatal(err)
		}
		p := decide(o)
		ready := statusOf(o, p).Conditions[0]
		if ready.Status != metav1.ConditionTrue || !strings.HasPrefix(ready.Message, tc.want) || !strings.HasSuffix(ready.Message, "at the times of 0 3 * * *, UTC") {
			t.Errorf("%s: %s %s", name, ready.Status, ready.Message)
		}
		if wake := wakeAfter(o, p); wake <= missingInterval != (tc.want != "") {
			t.Errorf("%s: looks again after %s", name, wake)
		}
	}
}
