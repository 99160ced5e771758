package decision

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
	"github.com/deckhand-dev/deckhand/internal/run/decisions"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// A plan is what to do and to report, as data.
type plan struct {
	// own makes the Run the owner of the Decision.
	own     bool
	applied metav1.Condition
}

// reasons are the reasons of the condition Applied.
var reasons = map[metav1.ConditionStatus]string{
	metav1.ConditionTrue:    v1alpha1.ReasonApplied,
	metav1.ConditionFalse:   v1alpha1.ReasonRefused,
	metav1.ConditionUnknown: v1alpha1.ReasonWaiting,
}

// decide returns the plan for a Decision. The rules that validate it are in package decisions, because the controllers
// of Runs use them too.
func decide(s state) plan {
	v := decisions.Evaluate(s.run, s.decision)
	more := ""
	if v.Applied == metav1.ConditionFalse {
		more = decisions.NextStep(s.run, s.decision, s.taken)
	}
	if s.notOwned != nil {
		more += ". " + apierr.Describe(s.notOwned)
	}
	return plan{
		own: s.adopts,
		applied: metav1.Condition{
			Type:    v1alpha1.ConditionApplied,
			Status:  v.Applied,
			Reason:  reasons[v.Applied],
			Message: task.Cut(task.Cut(v.Message, max(0, task.MaxMessage-len(more)))+more, task.MaxMessage),
		},
	}
}
