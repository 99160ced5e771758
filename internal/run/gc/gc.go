// Package gc finds and deletes unneeded revisions of Agents and Workflows. A revision is needed by the unfinished Runs
// that started with it, or will start with it, by the pods that mount it, and by the stored revisions of Workflows that
// refer to it.
package gc

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/workflow"
)

// minAge is how long an unneeded revision is kept. The operator stores a revision shortly before it reserves the
// attempt of a Run that starts with it, or creates its pod.
const minAge = time.Minute

// Revisions are the stored revisions of one Agent or Workflow.
type Revisions struct {
	// Stored are all stored revisions.
	Stored []corev1.ConfigMap
	// Unused has, by the name of the ConfigMap, the revisions that neither a Run nor a Workflow needs.
	Unused map[string]bool
	// Mounted has the unused revisions that a pod which has not ended mounts.
	Mounted map[string]bool
}

// ListRevisions reads the stored revisions that have a label. The client has the indexes
// UnfinishedRunsByRevision and LivePodsByRevision.
func ListRevisions(ctx context.Context, c client.Reader, namespace string, label client.MatchingLabels) (Revisions, error) {
	r := Revisions{Unused: map[string]bool{}, Mounted: map[string]bool{}}
	var list corev1.ConfigMapList
	if err := c.List(ctx, &list, client.InNamespace(namespace), label); err != nil {
		return r, fmt.Errorf("listing ConfigMaps: %w", err)
	}
	r.Stored = list.Items
	if len(r.Stored) == 0 {
		return r, nil
	}
	required, err := requiredByWorkflows(ctx, c, namespace)
	if err != nil {
		return r, err
	}
	for i := range r.Stored {
		hash := snapshot.HashOf(&r.Stored[i])
		var runs v1alpha1.RunList
		// One Run is enough to know; thousands may have the revision.
		if err := c.List(ctx, &runs, client.InNamespace(namespace), client.MatchingFields{UnfinishedRunsByRevision: hash}, client.Limit(1), client.UnsafeDisableDeepCopy); err != nil {
			return r, fmt.Errorf("listing Runs: %w", err)
		}
		name := r.Stored[i].Name
		r.Unused[name] = len(runs.Items) == 0 && !required[hash]
		if !r.Unused[name] {
			continue
		}
		var pods corev1.PodList
		if err := c.List(ctx, &pods, client.InNamespace(namespace), client.MatchingFields{LivePodsByRevision: name}, client.Limit(1), client.UnsafeDisableDeepCopy); err != nil {
			return r, fmt.Errorf("listing Pods: %w", err)
		}
		r.Mounted[name] = len(pods.Items) > 0
	}
	return r, nil
}

// requiredByWorkflows returns the hashes of the revisions to which stored revisions of
// Workflows refer: a Run of a Workflow may start them later.
func requiredByWorkflows(ctx context.Context, c client.Reader, namespace string) (map[string]bool, error) {
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

// Unneeded returns the revisions to delete: they are unneeded, older than minAge, and not current. If other unneeded
// ones are younger or mounted, wake is when to list them again.
func (r Revisions) Unneeded(current string, now time.Time) (unneeded []corev1.ConfigMap, wake time.Duration) {
	for _, cm := range r.Stored {
		if cm.Name == current || !r.Unused[cm.Name] {
			continue
		}
		left := cm.CreationTimestamp.Add(minAge).Sub(now)
		if r.Mounted[cm.Name] {
			left = minAge
		}
		if left > 0 {
			wake = max(wake, left)
			continue
		}
		unneeded = append(unneeded, cm)
	}
	return unneeded, wake
}

// DeleteRevisions deletes revisions. It does not delete a revision that was created again under the same name.
func DeleteRevisions(ctx context.Context, c client.Writer, revisions []corev1.ConfigMap) error {
	for i := range revisions {
		if err := apierr.Delete(ctx, c, &revisions[i], "ConfigMap"); err != nil {
			return err
		}
	}
	return nil
}

// UnfinishedRunsByRevision is the name of the index of unfinished Runs by the revision, of
// an Agent or a Workflow, that they started with or, as children, will start with.
const UnfinishedRunsByRevision = "unfinished-by-version"

// IndexUnfinishedRun returns the value of a Run in the index UnfinishedRunsByRevision.
func IndexUnfinishedRun(o client.Object) []string {
	run, is := o.(*v1alpha1.Run)
	if !is || run.Status.CompletionTime != nil {
		return nil
	}
	revision := cmp.Or(run.Status.WorkflowRevision, run.Annotations[v1alpha1.AnnotationRevisionHash])
	if run.Status.Attempt != nil {
		revision = run.Status.Attempt.AgentRevision
	}
	if revision == "" {
		return nil
	}
	return []string{revision}
}

// LivePodsByRevision is the name of the index of the pods that have not ended by the name of
// the ConfigMap of the revision that they mount.
const LivePodsByRevision = "live-by-revision"

// IndexLivePod returns the value of a pod in the index LivePodsByRevision.
func IndexLivePod(o client.Object) []string {
	pod, is := o.(*corev1.Pod)
	if !is || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return nil
	}
	if name := runnerpod.RevisionName(pod); name != "" {
		return []string{name}
	}
	return nil
}

// RunReleasedRevision lets Runs through that need their revision no more.
var RunReleasedRevision = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		return len(IndexUnfinishedRun(e.ObjectOld)) > 0 && len(IndexUnfinishedRun(e.ObjectNew)) == 0
	},
	DeleteFunc: func(e event.DeleteEvent) bool { return len(IndexUnfinishedRun(e.Object)) > 0 },
}

// WorkflowRevisionDeleted lets revisions of Workflows through that were deleted.
var WorkflowRevisionDeleted = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(event.UpdateEvent) bool { return false },
	DeleteFunc: func(e event.DeleteEvent) bool { return e.Object.GetLabels()[v1alpha1.LabelWorkflow] != "" },
}
