// Package proof holds a Run to what people decided: it reads the Decisions on a
// Run, and says which of those that it went by is not there.
package proof

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/answer"
)

// Decisions are those on a Run, oldest first. The client knows the field
// DecisionsByRun.
func Decisions(ctx context.Context, c client.Reader, run *v1alpha1.Run) ([]v1alpha1.Decision, error) {
	var list v1alpha1.DecisionList
	if err := c.List(ctx, &list, client.InNamespace(run.Namespace), client.MatchingFields{v1alpha1.DecisionsByRun: run.Name}); err != nil {
		return nil, fmt.Errorf("listing Decisions: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.Decision) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return list.Items, nil
}

// Missing is what Lacking says, where the API server itself has no such Decision
// either: a cache may just be late.
func Missing(ctx context.Context, live client.Reader, run *v1alpha1.Run, decisions []v1alpha1.Decision) (string, error) {
	name := Lacking(run, decisions)
	if name == "" {
		return "", nil
	}
	var d v1alpha1.Decision
	err := live.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: name}, &d)
	switch {
	case apierrors.IsNotFound(err):
		return name, nil
	case err != nil:
		return "", fmt.Errorf("getting Decision %s: %w", name, err)
	}
	return Lacking(run, append(slices.Clone(decisions), d)), nil
}

// Lacking is the first Decision that a Run says it went by and that is not among
// decisions as it says, or was refused; empty: there is none.
func Lacking(run *v1alpha1.Run, decisions []v1alpha1.Decision) string {
	if run.Status.Progress == nil {
		return ""
	}
	for _, done := range run.Status.Progress.Decided {
		made := func(d v1alpha1.Decision) bool {
			return d.Name == done.Name && d.Spec.Run == run.Name && proves(run, &d, done)
		}
		if done.Refused == "" && !slices.ContainsFunc(decisions, made) {
			return done.Name
		}
	}
	return ""
}

// proves says whether a Decision can be what a Run says that it went by. Where
// that was about a call, only one about a call can.
func proves(run *v1alpha1.Run, d *v1alpha1.Decision, done v1alpha1.DecidedRequest) bool {
	if done.Type != "" && done.Type != d.Spec.Type {
		return false
	}
	switch d.Spec.Type {
	case v1alpha1.DecisionApprove:
		return answer.Approves(run, d, done.Request, done.Digest) && !refused(d)
	case v1alpha1.DecisionDeny:
		return true
	default:
		return done.Digest == ""
	}
}

// refused says whether it is known for good that a Decision was not one.
func refused(d *v1alpha1.Decision) bool {
	return meta.IsStatusConditionFalse(d.Status.Conditions, v1alpha1.ConditionApplied)
}
