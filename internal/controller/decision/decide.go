package decision

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/decisions"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// reasons are those of the condition Applied.
var reasons = map[metav1.ConditionStatus]string{
	metav1.ConditionTrue:    v1alpha1.ReasonApplied,
	metav1.ConditionFalse:   v1alpha1.ReasonRefused,
	metav1.ConditionUnknown: v1alpha1.ReasonWaiting,
}

// decide is what became of it.
func decide(w world) metav1.Condition {
	v := decisions.Evaluate(w.run, w.decision)
	next := ""
	if v.Applied == metav1.ConditionFalse {
		next = decisions.NextStep(w.run, w.decision, w.taken)
	}
	return metav1.Condition{
		Type:    v1alpha1.ConditionApplied,
		Status:  v.Applied,
		Reason:  reasons[v.Applied],
		Message: task.Cut(v.Message, task.MaxMessage-len(next)) + next,
	}
}
