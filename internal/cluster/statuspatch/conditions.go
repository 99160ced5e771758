package statuspatch

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
)

// MergeConditions returns had with each of want in its place, sorted by type. A condition
// whose status does not change keeps its time, unless that is the epoch, the default of the
// schema.
func MergeConditions(had []metav1.Condition, now metav1.Time, generation int64, want ...metav1.Condition) []metav1.Condition {
	merged := slices.Clone(had)
	for _, c := range want {
		c.ObservedGeneration = generation
		c.Message = untrusted.Text(c.Message) // names and texts of users are quoted in it
		if !mayQuote(c) {
			c.Message = untrusted.WithoutQuotationMarks(c.Message)
		}
		c.LastTransitionTime = now
		if old := meta.FindStatusCondition(merged, c.Type); old != nil && old.LastTransitionTime.Unix() == 0 {
			meta.RemoveStatusCondition(&merged, c.Type)
		}
		meta.SetStatusCondition(&merged, c)
	}
	slices.SortFunc(merged, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
	return merged
}

// mayQuote reports whether the message of a condition may have the quotation marks of the operator: only that of a Run
// that asks users, and that of a Decision. Messages of other conditions contain texts of pods, events, model providers
// and admission webhooks, which could imitate a request.
func mayQuote(c metav1.Condition) bool {
	return c.Type == v1alpha1.ConditionApplied || c.Reason == v1alpha1.ReasonAwaitingAnswer || c.Reason == v1alpha1.ReasonAwaitingApproval
}

// ReadyConditions returns Ready with the conditions Reconciling and Stalled. They tell kstatus (Flux, helm --wait, Argo
// CD) whether an object may become ready without a change of its own spec.
func ReadyConditions(ready metav1.Condition) []metav1.Condition {
	waits := ready.Status == metav1.ConditionUnknown || slices.Contains(v1alpha1.WaitingReasons, ready.Reason)
	return WithProgress(ready, waits)
}

// WithProgress returns a condition with Reconciling, which is True if the object waits, and
// Stalled, which is True if the condition is False and the object does not wait.
func WithProgress(c metav1.Condition, waits bool) []metav1.Condition {
	waits = waits && c.Status != metav1.ConditionTrue
	return []metav1.Condition{
		c,
		{Type: v1alpha1.ConditionReconciling, Status: ConditionStatus(waits), Reason: c.Reason},
		{Type: v1alpha1.ConditionStalled, Status: ConditionStatus(!waits && c.Status == metav1.ConditionFalse), Reason: c.Reason},
	}
}

// ConditionStatus returns the status of a condition that holds or does not.
func ConditionStatus(holds bool) metav1.ConditionStatus {
	return map[bool]metav1.ConditionStatus{true: metav1.ConditionTrue, false: metav1.ConditionFalse}[holds]
}
