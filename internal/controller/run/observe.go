package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
	"github.com/deckhand-dev/deckhand/internal/cluster/untrusted"
	"github.com/deckhand-dev/deckhand/internal/run/children"
	"github.com/deckhand-dev/deckhand/internal/run/continuing"
	"github.com/deckhand-dev/deckhand/internal/run/decisions"
	"github.com/deckhand-dev/deckhand/internal/run/objectcache"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
)

// observe reads everything that a decision may depend on. An object that does not exist is nil; a failed read is an
// error.
func (r *Reconciler) observe(ctx context.Context, run *v1alpha1.Run) (state, error) {
	run.Status.Progress = untrusted.Progress(run.Status.Progress)
	s := state{run: run, now: r.now(), runner: r.runner, podDefaults: r.podDefaults, defaultTTL: r.defaultTTL, networkPolicies: r.networkPolicies != nil}
	missing, known := r.policies.Missing(run.Namespace)
	s.missingPolicies, s.policiesUnknown = missing, !known
	s, err := r.observeFirstAttempt(ctx, s)
	if err != nil {
		return s, err
	}
	run = s.run
	if s.pods, err = r.pods(ctx, run); err != nil {
		return s, err
	}
	s = s.withReportedPod()
	if err := r.observeVolumes(ctx, &s); err != nil {
		return s, err
	}
	if s.ancestors, err = children.Ancestors(ctx, r.client, run); err != nil {
		return s, err
	}
	if run.Status.CompletionTime != nil {
		err = r.childRuns.observe(ctx, &s)
		return s, err // a finished Run needs no revision: what tidying needs is on its pods and its claim
	}
	s.revision, s.notReadyMessage, err = r.revisions.of(ctx, run)
	if !errors.As(err, &s.unsupported) && err != nil {
		return s, err
	}
	if err := observeAssignable(ctx, r.live, &s); err != nil {
		return s, err
	}
	if run.Status.Attempt == nil { // there is neither a request nor a runner
		s.position, err = r.queue.Position(ctx, run)
		return s, err
	}
	if err := r.childRuns.observe(ctx, &s); err != nil {
		return s, err
	}
	if err := observeStart(ctx, r, &s); err != nil {
		return s, err
	}
	all, err := decisions.List(ctx, r.client, run)
	if err != nil {
		return s, err
	}
	s.decisions, s.granted = classifyDecisions(run, all)
	s.finalDecisions = decisions.FinalNames(all)
	s.missingDecision, err = decisions.FindMissing(ctx, r.live, run, all)
	return s, err
}

// observeVolumes reads the volume of a Run, and that of the Run that it continues.
func (r *Reconciler) observeVolumes(ctx context.Context, s *state) error {
	if err := r.volumes.observe(ctx, s); err != nil {
		return err
	}
	return observeSource(ctx, continuing.Reader{Cache: r.client, Live: r.live}, s)
}

// pods returns the pods of a Run, the oldest attempt first. It finds them by name, even if their labels and owners were
// changed.
func (r *Reconciler) pods(ctx context.Context, run *v1alpha1.Run) ([]corev1.Pod, error) {
	a, last := run.Status.Attempt, int32(0)
	switch {
	case a != nil:
		last = a.Number
	case run.Status.CompletionTime != nil:
		last = 1 // an operator that stalled may have created it after the end
	}
	var own []corev1.Pod
	for n := range last {
		pod, found, err := r.podCaches.get(ctx, run, client.ObjectKey{Namespace: run.Namespace, Name: runnerpod.Name(run.Name, n+1)})
		if err != nil {
			return nil, err
		}
		if found && runnerpod.BelongsTo(pod, run) {
			own = append(own, *pod)
		}
	}
	if a == nil {
		return own, nil
	}
	own, err := r.currentPod(ctx, run, own)
	slices.SortFunc(own, func(a, b corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	return own, err
}

// currentPod reads the pod of the current attempt. It asks the API server if the cache is not enough: the cache may be
// late, has only pods with the label of a Run, and keeps too little of a pod for the comparison before it is recorded.
// For a Run that finished some time ago the cache is enough, because it only determines when the pod is deleted.
func (r *Reconciler) currentPod(ctx context.Context, run *v1alpha1.Run, own []corev1.Pod) ([]corev1.Pod, error) {
	a := run.Status.Attempt
	at := slices.IndexFunc(own, func(p corev1.Pod) bool { return p.Name == a.Pod })
	recorded, late := a.PodUID != "", run.Status.CompletionTime != nil && r.now().Sub(run.Status.CompletionTime.Time) > leaveGrace
	reported := run.Status.Progress != nil && run.Status.Progress.Attempt == a.Number
	if recorded && at >= 0 && string(own[at].UID) == a.PodUID || recorded && late || !recorded && at < 0 && !reported {
		return own, nil
	}
	var pod corev1.Pod
	err := r.live.Get(ctx, client.ObjectKey{Namespace: run.Namespace, Name: a.Pod}, &pod)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("getting Pod %s: %w", a.Pod, err)
	}
	if at >= 0 {
		own = slices.Delete(own, at, at+1)
	}
	if err == nil && runnerpod.BelongsTo(&pod, run) {
		own = append(own, pod)
	}
	return own, nil
}

// observeStart reads why a created pod does not start.
func observeStart(ctx context.Context, r *Reconciler, s *state) (err error) {
	if s.missingConfigMap, err = missingConfigMap(ctx, r.live, *s); err != nil {
		return err
	}
	s.startupWarning, err = r.observeStartupWarning(ctx, *s)
	return err
}

// podCaches reads pods from two caches and, if necessary, from the API server.
type podCaches struct {
	client client.Client
	ended  client.Reader // metadata of ended pods; nil: client has all pods
	live   client.Reader
}

// get returns a pod of a Run; false: the caches do not have it. For an ended pod of a Run that has finished, or is
// about to finish with success, it returns only the metadata, which is enough to delete it. Other ended pods are read
// from the API server.
func (p podCaches) get(ctx context.Context, run *v1alpha1.Run, key client.ObjectKey) (pod *corev1.Pod, found bool, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("getting Pod %s: %w", key.Name, err)
		}
	}()
	pod = &corev1.Pod{}
	if found, err = apierr.Found(p.client.Get(ctx, key, pod)); found || err != nil || p.ended == nil {
		return pod, found, err
	}
	m := objectcache.PodMetadata()
	if found, err = apierr.Found(p.ended.Get(ctx, key, m)); !found || err != nil {
		return nil, false, err
	}
	if run.Status.CompletionTime != nil || hasSucceeded(run) {
		return objectcache.PodFromMetadata(m, run), true, nil
	}
	found, err = apierr.Found(p.live.Get(ctx, key, pod))
	return pod, found, err
}

// hasSucceeded reports whether the runner of the current attempt reported success: then the end of its pod does not
// matter.
func hasSucceeded(run *v1alpha1.Run) bool {
	a, p := run.Status.Attempt, run.Status.Progress
	return a != nil && p != nil && p.Attempt == a.Number && p.Result != nil && p.Result.Committed && p.Result.Reason == v1alpha1.ReasonFinished
}
