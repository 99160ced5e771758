package agent

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/reach"
	"github.com/deckhand-dev/deckhand/internal/snapshot"
	"github.com/deckhand-dev/deckhand/internal/workflow"
)

// A world is everything that one decision may depend on.
type world struct {
	agent   *v1alpha1.Agent  // nil: gone
	objects snapshot.Objects // what it may reach
	// versions are the Agent's stored ones, unused those that no unfinished Run and
	// no version of a Workflow names.
	versions []corev1.ConfigMap
	unused   map[string]bool // by name of the ConfigMap
	now      time.Time
}

func (r *Reconciler) look(ctx context.Context, key client.ObjectKey) (world, error) {
	w := world{now: r.now(), unused: map[string]bool{}}
	var agent v1alpha1.Agent
	switch err := r.client.Get(ctx, key, &agent); {
	case err == nil:
		w.agent = &agent
	case !apierrors.IsNotFound(err):
		return w, err
	}
	if w.agent != nil {
		var err error
		if w.objects, err = reach.FromAgent(ctx, r.client, &agent); err != nil {
			return w, err
		}
	}
	return w, r.lookAtVersions(ctx, key, &w)
}

func (r *Reconciler) lookAtVersions(ctx context.Context, key client.ObjectKey, w *world) error {
	var list corev1.ConfigMapList
	err := r.client.List(ctx, &list, client.InNamespace(key.Namespace), client.MatchingLabels{v1alpha1.LabelAgent: snapshot.Label(key.Name)})
	if err != nil {
		return fmt.Errorf("listing ConfigMaps: %w", err)
	}
	w.versions = list.Items
	if len(w.versions) == 0 {
		return nil
	}
	needed, err := r.needed(ctx, key.Namespace)
	if err != nil {
		return err
	}
	for i := range w.versions {
		cm := &w.versions[i]
		var runs v1alpha1.RunList
		if err := r.client.List(ctx, &runs, client.InNamespace(key.Namespace), client.MatchingFields{ByVersion: snapshot.HashOf(cm)}); err != nil {
			return fmt.Errorf("listing Runs: %w", err)
		}
		w.unused[cm.Name] = len(runs.Items) == 0 && !needed[snapshot.HashOf(cm)]
	}
	return nil
}

// needed are the versions that stored versions of Workflows name: a Run of one
// may have yet to start its Agents.
func (r *Reconciler) needed(ctx context.Context, namespace string) (map[string]bool, error) {
	var list corev1.ConfigMapList
	if err := r.client.List(ctx, &list, client.InNamespace(namespace), client.HasLabels{v1alpha1.LabelWorkflow}, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing ConfigMaps: %w", err)
	}
	out := map[string]bool{}
	for i := range list.Items {
		for _, hash := range workflow.Needs(&list.Items[i]) {
			out[hash] = true
		}
	}
	return out, nil
}
