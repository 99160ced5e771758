// Package sweep removes stored versions of Agents and Workflows that nothing needs
// any more.
//
// A version is needed by the unfinished Runs that began with it, or are to begin
// with it, and by the stored versions of Workflows that name it.
package gc

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/snapshot"
	"github.com/deckhand-dev/deckhand/internal/workflow"
)

// youth is how long a version is kept though nothing names it: a Run stores it
// just before it claims it.
const youth = time.Minute

// Revisions are the stored versions of one Agent or Workflow.
type Revisions struct {
	// Stored are all of them.
	Stored []corev1.ConfigMap
	// Unused says, by name of the ConfigMap, which of them nothing needs.
	Unused map[string]bool
}

// ListRevisions reads the stored versions that have a label. The client has the index
// UnfinishedRunsByRevision.
func ListRevisions(ctx context.Context, c client.Reader, namespace string, label client.MatchingLabels) (Revisions, error) {
	v := Revisions{Unused: map[string]bool{}}
	var list corev1.ConfigMapList
	if err := c.List(ctx, &list, client.InNamespace(namespace), label); err != nil {
		return v, fmt.Errorf("listing ConfigMaps: %w", err)
	}
	v.Stored = list.Items
	if len(v.Stored) == 0 {
		return v, nil
	}
	named, err := named(ctx, c, namespace)
	if err != nil {
		return v, err
	}
	for i := range v.Stored {
		hash := snapshot.HashOf(&v.Stored[i])
		var runs v1alpha1.RunList
		// One is enough to know, and thousands may have the version.
		if err := c.List(ctx, &runs, client.InNamespace(namespace), client.MatchingFields{UnfinishedRunsByRevision: hash}, client.Limit(1), client.UnsafeDisableDeepCopy); err != nil {
			return v, fmt.Errorf("listing Runs: %w", err)
		}
		v.Unused[v.Stored[i].Name] = len(runs.Items) == 0 && !named[hash]
	}
	return v, nil
}

// named are the versions that stored versions of Workflows name: a Run of one may
// have yet to start them.
func named(ctx context.Context, c client.Reader, namespace string) (map[string]bool, error) {
	var list corev1.ConfigMapList
	if err := c.List(ctx, &list, client.InNamespace(namespace), client.HasLabels{v1alpha1.LabelWorkflow}, client.UnsafeDisableDeepCopy); err != nil {
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

// Old are the versions that may go: nothing needs them, they are not young and not
// the current one, by name of its ConfigMap. Where some are young, it is to be
// looked again after a while.
func (v Revisions) Old(current string, now time.Time) (old []corev1.ConfigMap, again time.Duration) {
	for _, cm := range v.Stored {
		if cm.Name == current || !v.Unused[cm.Name] {
			continue
		}
		if left := cm.CreationTimestamp.Add(youth).Sub(now); left > 0 {
			again = max(again, left)
			continue
		}
		old = append(old, cm)
	}
	return old, again
}

// DeleteRevisions removes versions, but none that has the name of another.
func DeleteRevisions(ctx context.Context, c client.Writer, versions []corev1.ConfigMap) error {
	for i := range versions {
		uid := versions[i].UID
		err := c.Delete(ctx, &versions[i], client.Preconditions{UID: &uid})
		if client.IgnoreNotFound(err) != nil {
			return fmt.Errorf("deleting ConfigMap %s: %w", versions[i].Name, err)
		}
	}
	return nil
}
