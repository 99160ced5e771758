package workflowrun

import (
	"strings"
	"testing"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A Run that limits its cost ends before it has a child Run if the cost cannot be counted.
func TestARunWhoseCostCannotBeCountedHasNoChild(t *testing.T) {
	c := newCluster(whole(t, pipeline), func(r *v1alpha1.Run) { r.Spec.Limits = &v1alpha1.Limits{Cost: new(v1alpha1.Money("1USD"))} })
	priced := func(prices *task.Prices) {
		for _, a := range c.version.Agents {
			for i := range a.Snapshot.Snapshot.Models {
				a.Snapshot.Snapshot.Models[i].Prices = prices
			}
		}
	}
	priced(nil)
	p := decide(c.observed())
	const want = " costs. Set spec.prices of the Model, or remove limits.cost; create another Run"
	if p.Reason != v1alpha1.ReasonMisconfigured || !strings.HasPrefix(p.Message, "spec.limits.cost needs to know what Model ") || !strings.HasSuffix(p.Message, want) {
		t.Errorf("%s: %s", p.Reason, p.Message)
	}
	priced(&task.Prices{})
	if p := decide(c.observed()); p.Reason != v1alpha1.ReasonRunning {
		t.Errorf("%s: %s", p.Reason, p.Message)
	}
}
