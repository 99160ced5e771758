package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/template"
)

// findRun gets a Run. If there is none of that name, the error has the nearest names.
func (f *Factory) findRun(ctx context.Context, c client.Client, name string) (*v1alpha1.Run, error) {
	namespace, err := f.Namespace()
	if err != nil {
		return nil, err
	}
	name = strings.TrimPrefix(name, "run/")
	run := &v1alpha1.Run{}
	err = c.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, run)
	if !apierrors.IsNotFound(err) || isNotInstalled(err) {
		return run, err
	}
	runs, _, listErr := listRuns(ctx, c, pageSize, client.InNamespace(namespace))
	names := make([]string, 0, len(runs))
	for i := range runs {
		names = append(names, runs[i].Name)
	}
	hint := "List Runs with: kubectl deckhand list -A"
	if near := nearest(name, names); listErr == nil && len(near) > 0 {
		hint = "Did you mean " + strings.Join(near, ", ") + "?"
	}
	return nil, fmt.Errorf("run %s not found in namespace %s. %s", name, namespace, hint)
}

// nearest returns at most three names that a user may have meant, the most similar first.
func nearest(wanted string, names []string) []string {
	type candidate struct {
		name     string
		distance int
	}
	var near []candidate
	for _, name := range names {
		d := template.EditDistance(wanted, name)
		if strings.HasPrefix(name, wanted) {
			d = min(d, 1)
		}
		if d <= max(2, len(wanted)/3) {
			near = append(near, candidate{name, d})
		}
	}
	slices.SortStableFunc(near, func(a, b candidate) int { return a.distance - b.distance })
	out := make([]string, 0, 3)
	for _, n := range near[:min(3, len(near))] {
		out = append(out, n.name)
	}
	return out
}
