package ready

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/statuspatch"
)

// statusFields are the fields of a status that all kinds have.
type statusFields struct {
	status     any // a pointer to the whole
	generation *int64
	conditions *[]metav1.Condition
	nodes      *int32                // of a Workflow
	prices     *v1alpha1.PriceSource // of a Model
	list       **v1alpha1.PriceList  // of prices
}

var errOtherType = errors.New("the copy has another type")

// updateStatus writes the status once, if it changed.
func (r *reconciler[T, R]) updateStatus(ctx context.Context, s state[T, R], p plan) error {
	if !s.exists {
		return nil
	}
	want, is := s.object.DeepCopyObject().(T)
	if !is {
		return fmt.Errorf("copying %s: %w", r.name, errOtherType)
	}
	fields := r.status(want)
	*fields.generation = want.GetGeneration()
	*fields.conditions = statuspatch.MergeConditions(*fields.conditions, metav1.NewTime(s.now), want.GetGeneration(), p.conditions...)
	if fields.nodes != nil {
		*fields.nodes = p.nodes
	}
	if fields.prices != nil {
		*fields.prices, *fields.list = p.prices, p.list
	}
	was := meta.FindStatusCondition(*r.status(s.object).conditions, v1alpha1.ConditionReachable).DeepCopy()
	if err := statuspatch.Apply(ctx, r.client, s.object, r.status(s.object).status, fields.status); err != nil {
		return err
	}
	r.recordReachable(want, was, meta.FindStatusCondition(*fields.conditions, v1alpha1.ConditionReachable))
	return nil
}

// recordReachable emits an event when a Model became unreachable, or answers again, but not for its first answer.
func (r *reconciler[T, R]) recordReachable(model T, was, is *metav1.Condition) {
	switch {
	case is == nil || was != nil && was.Status == is.Status:
	case is.Status == metav1.ConditionFalse:
		r.events.Eventf(model, nil, corev1.EventTypeWarning, is.Reason, "Reach", "%s", is.Message)
	case is.Status == metav1.ConditionTrue && was != nil && was.Status == metav1.ConditionFalse:
		r.events.Eventf(model, nil, corev1.EventTypeNormal, is.Reason, "Reach", "The Model answers again")
	}
}
