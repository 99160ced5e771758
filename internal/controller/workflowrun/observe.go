package workflowrun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/internal/revision/refs/cached"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/revision/stored"
	"github.com/deckhand-dev/deckhand/internal/run/children"
	"github.com/deckhand-dev/deckhand/internal/run/continuing"
	"github.com/deckhand-dev/deckhand/internal/run/decisions"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/internal/workflow"
)

// observe reads everything that a decision may depend on. An object that does not exist is nil; a failed read is an
// error.
func (r *Reconciler) observe(ctx context.Context, parent *v1alpha1.Run) (state, error) {
	s := state{run: parent, now: r.now(), defaultTTL: r.defaultTTL}
	missing, known := r.policies.Missing(parent.Namespace)
	s.missingPolicies, s.policiesUnknown = missing, !known
	var err error
	if s.children, err = r.observeChildren(ctx, parent); err != nil {
		return s, err
	}
	if parent.Status.CompletionTime != nil {
		err = r.observeFinished(ctx, &s)
		return s, err
	}
	if err := r.observeSource(ctx, &s); err != nil {
		return s, err
	}
	s.revision, s.notReadyMessage, err = r.observeRevision(ctx, parent)
	if unsupported, is := errors.AsType[*stored.UnsupportedError](err); is {
		s.unsupported = unsupported
		return s, nil
	}
	if s.revision == nil || err != nil {
		return s, err
	}
	if s.program, err = workflow.Compile(s.revision); err != nil {
		s.revision, s.notReadyMessage = nil, fmt.Sprintf("Workflow %q cannot be run any more: %v", parent.Spec.Workflow, err)
		return s, nil // the Run's conditions report it
	}
	if !s.hasStarted() {
		return s, nil
	}
	if s.cacheBehind, err = r.isCacheBehind(ctx, s); err != nil {
		return s, err
	}
	if s.decisions, err = r.observeDecisions(ctx, s); err != nil {
		return s, err
	}
	s.missingDecision, err = decisions.FindMissing(ctx, r.live, s.run, s.decisions)
	return s, err
}

// observeDecisions returns the Decisions on a Run, oldest first, and then those of other Runs that it reuses or may reuse.
func (r *Reconciler) observeDecisions(ctx context.Context, s state) ([]v1alpha1.Decision, error) {
	all, err := decisions.List(ctx, r.client, s.run)
	if err != nil {
		return nil, err
	}
	other := s.decided()
	if s.source != nil && s.source.run != nil && s.source.run.Status.Progress != nil {
		other = slices.Concat(other, s.source.run.Status.Progress.Decided)
	}
	for _, done := range other {
		if slices.ContainsFunc(all, func(d v1alpha1.Decision) bool { return d.Name == done.Name }) {
			continue
		}
		var d v1alpha1.Decision
		found, err := apierr.Found(r.client.Get(ctx, client.ObjectKey{Namespace: s.run.Namespace, Name: done.Name}, &d))
		if err != nil {
			return nil, fmt.Errorf("getting Decision %s: %w", done.Name, err)
		}
		if found {
			all = append(all, d)
		}
	}
	return all, nil
}

// observeFinished reads what keeps a finished Run and its volumes.
func (r *Reconciler) observeFinished(ctx context.Context, s *state) (err error) {
	if s.parentIsActive, err = r.isParentActive(ctx, s.run); err != nil {
		return err
	}
	if s.volumes, s.volumesInUse, err = r.observeVolumes(ctx, s.run); err != nil {
		return err
	}
	s.volumeUses = map[string]continuing.Use{}
	names := make([]string, 0, len(s.volumes))
	for i := range s.volumes {
		name := s.volumes[i].Name
		names = append(names, name)
		if s.volumeUses[name], err = (continuing.Reader{Cache: r.client, Live: r.live}).UseOf(ctx, s.run, &s.volumes[i]); err != nil {
			return err
		}
	}
	s.isNeeded, err = continuing.IsNeeded(ctx, r.client, s.run, names...)
	return err
}

// observeChildren returns the children of a Run from the cache. They are not copied and must not be changed.
func (r *Reconciler) observeChildren(ctx context.Context, parent *v1alpha1.Run) ([]*v1alpha1.Run, error) {
	var list v1alpha1.RunList
	err := r.client.List(ctx, &list, client.InNamespace(parent.Namespace), client.MatchingLabels{v1alpha1.LabelWorkflowRun: parent.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing child Runs: %w", err)
	}
	var out []*v1alpha1.Run
	for i := range list.Items {
		if child := &list.Items[i]; isChildOf(child, parent) {
			child.Status.Progress = untrusted.Progress(child.Status.Progress) // a copy: the cache keeps its own
			out = append(out, child)
		}
	}
	slices.SortFunc(out, func(a, b *v1alpha1.Run) int {
		at, other := keyOf(a), keyOf(b)
		return cmp.Or(cmp.Compare(at.node, other.node), cmp.Compare(at.index, other.index), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

// isCacheBehind reports whether the cache lacks changes. Only the API server can confirm that a child was deleted. A
// cache that shows a child as active again after it succeeded is always behind.
func (r *Reconciler) isCacheBehind(ctx context.Context, s state) (bool, error) {
	missing, late := missingChildren(s)
	if late || len(missing) == 0 {
		return late, nil
	}
	list := metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind("RunList"))
	if err := r.live.List(ctx, &list, client.InNamespace(s.run.Namespace), client.MatchingLabels{v1alpha1.LabelWorkflowRun: s.run.Name}); err != nil {
		return false, fmt.Errorf("listing child Runs: %w", err)
	}
	shown := map[string]bool{}
	for _, c := range s.children {
		shown[string(c.UID)] = true
	}
	return slices.ContainsFunc(list.Items, func(c metav1.PartialObjectMetadata) bool {
		return isChildOf(&c, s.run) && !shown[string(c.UID)]
	}), nil
}

// missingChildren returns the recorded children that the cache does not show, and whether the cache is older than the
// record.
func missingChildren(s state) (missing []childKey, late bool) {
	gone, good := map[string]int{}, map[string]int{}
	for _, c := range s.children {
		if runstatus.IsFinished(c) && succeeded(c) {
			good[keyOf(c).node]++
		}
	}
	missing = deletedChildren(s)
	for _, at := range missing {
		gone[at.node]++
	}
	for _, n := range s.nodes() {
		late = late || good[n.Name] < recordedState(s, n.Name).Succeeded-gone[n.Name]
	}
	return missing, late
}

// observeRevision returns the revision with which the Run started. Before that, it is the revision that the parent
// sets, or the current one. If there is none, the text has the cause.
func (r *Reconciler) observeRevision(ctx context.Context, parent *v1alpha1.Run) (*workflow.Revision, string, error) {
	hash := cmp.Or(parent.Status.WorkflowRevision, children.FixedRevision(parent))
	if hash == "" {
		return r.currentRevision(ctx, parent)
	}
	v, found, err := r.storedRevision(ctx, parent.Namespace, hash)
	if found || err != nil {
		return v, "", err
	}
	if v, _, err = r.currentRevision(ctx, parent); err != nil || v != nil && v.Hash == hash {
		return v, "", err // stored again before the next child is made
	}
	return nil, fmt.Sprintf("The revision of Workflow %s that this Run uses was deleted or changed (ConfigMap %s); create another Run", parent.Spec.Workflow, workflow.Name(hash)), nil
}

// storedRevision returns a revision from its ConfigMaps; false: they do not exist or do not match its hash. If this
// operator cannot read it, the error is a *[stored.UnsupportedError]. Revisions are cached in memory, because they
// never change.
func (r *Reconciler) storedRevision(ctx context.Context, namespace, hash string) (*workflow.Revision, bool, error) {
	if v := r.revisions.get(hash); v != nil {
		return v, true, nil
	}
	var failed error
	v, err := workflow.Read(ctx, func(name string) (*corev1.ConfigMap, bool, error) {
		cm, found, err := r.configMap(ctx, client.ObjectKey{Namespace: namespace, Name: name})
		failed = cmp.Or(failed, err)
		return cm, found, err
	}, hash)
	if failed != nil {
		return nil, false, failed
	}
	if unsupported, is := errors.AsType[*stored.UnsupportedError](err); is {
		return nil, false, unsupported
	}
	usable := v != nil && err == nil
	if usable {
		r.revisions.put(hash, v)
	}
	return v, usable, nil
}

// configMap returns a ConfigMap; false: the API server does not have it.
func (r *Reconciler) configMap(ctx context.Context, key client.ObjectKey) (*corev1.ConfigMap, bool, error) {
	var cm corev1.ConfigMap
	found, err := apierr.Found(r.client.Get(ctx, key, &cm))
	if !found && err == nil {
		found, err = apierr.Found(r.live.Get(ctx, key, &cm))
	}
	if err != nil {
		return nil, false, fmt.Errorf("getting ConfigMap %s: %w", key.Name, err)
	}
	return &cm, found, nil
}

// currentRevision returns the current revision of the Workflow.
func (r *Reconciler) currentRevision(ctx context.Context, parent *v1alpha1.Run) (*workflow.Revision, string, error) {
	var w v1alpha1.Workflow
	err := r.client.Get(ctx, client.ObjectKey{Namespace: parent.Namespace, Name: parent.Spec.Workflow}, &w)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Sprintf("Workflow %q not found in namespace %s; create it, or delete this Run and name another", parent.Spec.Workflow, parent.Namespace), nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("getting Workflow %s: %w", parent.Spec.Workflow, err)
	}
	objects, err := workflow.From(ctx, cached.Reader(r.client), &w)
	if err != nil {
		return nil, "", err
	}
	v, err := workflow.Of(&w, objects)
	if problem, is := errors.AsType[*snapshot.NotReadyError](err); is {
		return nil, fmt.Sprintf("Workflow %q is not ready: %s", w.Name, problem.Message), nil
	}
	return v, "", err
}

// observeVolumes returns the volumes that the children of a Run share, and which of them a pod can still write to.
func (r *Reconciler) observeVolumes(ctx context.Context, parent *v1alpha1.Run) ([]corev1.PersistentVolumeClaim, map[string]bool, error) {
	var list corev1.PersistentVolumeClaimList
	if err := r.client.List(ctx, &list, client.InNamespace(parent.Namespace), client.MatchingLabels{v1alpha1.LabelRun: parent.Name}); err != nil {
		return nil, nil, fmt.Errorf("listing PersistentVolumeClaims: %w", err)
	}
	own := slices.DeleteFunc(list.Items, func(c corev1.PersistentVolumeClaim) bool {
		return !metav1.IsControlledBy(&c, parent) || c.DeletionTimestamp != nil
	})
	busy := map[string]bool{}
	for i := range own {
		var pods corev1.PodList
		if err := r.client.List(ctx, &pods, client.InNamespace(parent.Namespace), client.MatchingLabels{v1alpha1.LabelVolumeClaim: own[i].Name}); err != nil {
			return nil, nil, fmt.Errorf("listing Pods: %w", err)
		}
		busy[own[i].Name] = runnerpod.InUse(own[i].Name, pods.Items)
	}
	return own, busy, nil
}

// The maximum number of cached revisions, and of the expressions in them. A compiled expression takes about 26 KB, so
// that all of them take 26 MB.
const (
	maxCachedRevisions   = 128
	maxCachedExpressions = 1000
)

// revisionCache holds compiled revisions by their hashes. If there are too many, arbitrary ones are removed, because
// they can be read again.
type revisionCache struct {
	mu          sync.Mutex
	all         map[string]cachedRevision
	expressions int // of all
}

type cachedRevision struct {
	revision    *workflow.Revision
	expressions int
}

func (r *revisionCache) get(hash string) *workflow.Revision {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.all[hash].revision
}

// put adds a revision. It keeps that one, even if it is larger than the bound.
func (r *revisionCache) put(hash string, revision *workflow.Revision) {
	expressions := 0
	if program, err := workflow.Compile(revision); err == nil {
		expressions = program.Expressions()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all == nil {
		r.all = map[string]cachedRevision{}
	}
	r.remove(hash)
	for other := range r.all {
		if len(r.all) < maxCachedRevisions && r.expressions+expressions <= maxCachedExpressions {
			break
		}
		r.remove(other)
	}
	r.all[hash] = cachedRevision{revision, expressions}
	r.expressions += expressions
}

func (r *revisionCache) remove(hash string) {
	r.expressions -= r.all[hash].expressions
	delete(r.all, hash)
}
