// Package condition merges what a controller says into the conditions that an
// object has, so that a condition's time changes only when its status does.
package condition

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Merge is had with each of want in its place, sorted by type. A condition
// whose status stays keeps its time, unless that is the epoch which the schema
// puts there before any controller has looked.
func Merge(had []metav1.Condition, now metav1.Time, generation int64, want ...metav1.Condition) []metav1.Condition {
	merged := slices.Clone(had)
	for _, c := range want {
		c.ObservedGeneration = generation
		c.LastTransitionTime = now
		if old := meta.FindStatusCondition(merged, c.Type); old != nil && old.LastTransitionTime.Unix() == 0 {
			meta.RemoveStatusCondition(&merged, c.Type)
		}
		meta.SetStatusCondition(&merged, c)
	}
	slices.SortFunc(merged, func(a, b metav1.Condition) int { return strings.Compare(a.Type, b.Type) })
	return merged
}

// When is a condition's status where something holds or does not.
func When(holds bool) metav1.ConditionStatus {
	return map[bool]metav1.ConditionStatus{true: metav1.ConditionTrue, false: metav1.ConditionFalse}[holds]
}
