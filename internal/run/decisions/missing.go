package decisions

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// List returns the Decisions on a Run, oldest first. The client has the index
// DecisionsByRun.
func List(ctx context.Context, c client.Reader, run *v1alpha1.Run) ([]v1alpha1.Decision, error) {
	var list v1alpha1.DecisionList
	if err := c.List(ctx, &list, client.InNamespace(run.Namespace), client.MatchingFields{v1alpha1.DecisionsByRun: run.Name}); err != nil {
		return nil, fmt.Errorf("listing Decisions: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b v1alpha1.Decision) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return list.Items, nil
}

// FindMissing returns what FirstMissing does, if the API server itself does not have the
// Decision either: the cache can be late.
func FindMissing(ctx context.Context, live client.Reader, run *v1alpha1.Run, decisions []v1alpha1.Decision) (string, error) {
	name := FirstMissing(run, decisions)
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
	return FirstMissing(run, append(slices.Clone(decisions), d)), nil
}

// FirstMissing returns the name of the first Decision that a Run reports to have applied
// and that does not exist as reported, or was refused. It is empty if there is none.
func FirstMissing(run *v1alpha1.Run, decisions []v1alpha1.Decision) string {
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

// proves reports whether a Decision can be the one that a Run reports to have applied. If
// that was about a tool call, only a Decision about a tool call can.
func proves(run *v1alpha1.Run, d *v1alpha1.Decision, done v1alpha1.DecidedRequest) bool {
	if done.Type != "" && done.Type != d.Spec.Type {
		return false
	}
	switch d.Spec.Type {
	case v1alpha1.DecisionApprove:
		return IsApproval(run, d, done.Request, done.Digest) && !isRefused(d)
	case v1alpha1.DecisionDeny:
		return true
	default:
		return done.Digest == ""
	}
}

// isRefused reports whether the condition Applied of a Decision is False.
func isRefused(d *v1alpha1.Decision) bool {
	return meta.IsStatusConditionFalse(d.Status.Conditions, v1alpha1.ConditionApplied)
}
