package workflow

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/controller/agent"
	"github.com/deckhand-dev/deckhand/internal/snapshot"
	"github.com/deckhand-dev/deckhand/internal/workflow"
)

// A world is everything that one decision may depend on.
type world struct {
	workflow *v1alpha1.Workflow // nil: gone
	objects  workflow.Objects   // what it may reach
	// versions are the Workflow's stored ones, unused those that no unfinished Run
	// and no other version names.
	versions []corev1.ConfigMap
	unused   map[string]bool // by name of the ConfigMap
	now      time.Time
}

func (r *Reconciler) look(ctx context.Context, key client.ObjectKey) (world, error) {
	w := world{now: r.now(), unused: map[string]bool{}}
	var found v1alpha1.Workflow
	switch err := r.client.Get(ctx, key, &found); {
	case err == nil:
		w.workflow = &found
	case !apierrors.IsNotFound(err):
		return w, err
	}
	if w.workflow != nil {
		var err error
		if w.objects, err = workflow.From(ctx, r.client, w.workflow); err != nil {
			return w, err
		}
	}
	return w, r.lookAtVersions(ctx, key, &w)
}

func (r *Reconciler) lookAtVersions(ctx context.Context, key client.ObjectKey, w *world) error {
	var all corev1.ConfigMapList
	if err := r.client.List(ctx, &all, client.InNamespace(key.Namespace), client.HasLabels{v1alpha1.LabelWorkflow}); err != nil {
		return fmt.Errorf("listing ConfigMaps: %w", err)
	}
	needed := map[string]bool{}
	for i := range all.Items {
		for _, hash := range workflow.Needs(&all.Items[i]) {
			needed[hash] = true
		}
	}
	label := snapshot.Label(key.Name)
	w.versions = slices.DeleteFunc(all.Items, func(cm corev1.ConfigMap) bool { return cm.Labels[v1alpha1.LabelWorkflow] != label })
	for i := range w.versions {
		cm := &w.versions[i]
		var runs v1alpha1.RunList
		if err := r.client.List(ctx, &runs, client.InNamespace(key.Namespace), client.MatchingFields{agent.ByVersion: snapshot.HashOf(cm)}); err != nil {
			return fmt.Errorf("listing Runs: %w", err)
		}
		w.unused[cm.Name] = len(runs.Items) == 0 && !needed[snapshot.HashOf(cm)]
	}
	return nil
}
