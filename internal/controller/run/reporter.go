package run

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
	"github.com/deckhand-dev/deckhand/internal/cluster/statuspatch"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
)

// Before the first attempt is recorded, the API server accepts reports of any runner pod with its name. This file
// decides whether a report belongs to this Run. docs/designs/018 has the table.

// observeReporter completes the status of a Run with a report of a pod that neither this process nor its caches know.
func (r *Reconciler) observeReporter(ctx context.Context, s state) (state, error) {
	run := s.run
	key := client.ObjectKey{Namespace: run.Namespace, Name: runnerpod.Name(run.Name, 1)}
	pod := &corev1.Pod{}
	found, err := apierr.Found(r.live.Get(ctx, key, pod))
	if err != nil {
		return s, fmt.Errorf("getting Pod %s: %w", key.Name, err)
	}
	hash, err := r.revisions.hashOf(ctx, run, runnerpod.RevisionName(pod))
	if err != nil {
		return s, err
	}
	if s.revision, _, err = r.revisions.of(ctx, run); !errors.As(err, &s.unsupported) && err != nil {
		return s, err
	}
	if s.position, err = r.queue.Position(ctx, run); err != nil {
		return s, err
	}
	if !found {
		pod = nil
	}
	return s.withReporter(pod, hash), nil
}

// withReporter returns the state with a pod that reported for the first attempt and that the caches do not show. pod is
// the pod that has the name of attempt 1 now; nil: there is none.
//
//   - It is a pod of the Run: the caches were late, and what it reports counts.
//   - It is a pod of another Run, which had the name before: its report is removed.
//   - It no longer exists: it was a pod of this Run that no operator remembers. Its report excludes
//     other pods of its name, so it counts as a lost attempt. A report of effects counts, so that
//     nothing is repeated. Its result does not, because it can no longer be proven which Run the pod
//     belonged to; nor does a Decision in its report, because none is delivered before the attempt
//     is recorded. A Run whose first attempt is reserved has no such pod, unless its Agent was
//     changed since.
func (s state) withReporter(pod *corev1.Pod, revision string) state {
	uid := s.run.Status.Progress.PodUID
	switch {
	case pod != nil && string(pod.UID) == uid && isFirst(pod, s.run):
		return s.withAttempt(attemptOfPod(pod, revision, s.now))
	case pod != nil && string(pod.UID) == uid, !startsUnrecorded(s) && s.run.Status.Progress.Effects != v1alpha1.EffectsBegun:
		return s.withoutReport()
	}
	s = s.withAttempt(&v1alpha1.Attempt{
		Number: 1, Pod: runnerpod.Name(s.run.Name, 1), PodUID: uid, AgentRevision: revision, StartedAt: s.run.CreationTimestamp,
	})
	s.run.Status.Progress.Result, s.run.Status.Progress.Decided = nil, nil
	return s
}

// withReportedPod returns the state with the UID of the pod that reported, if a cache still has this pod and the API
// server does not. It is the first attempt, even if another pod has its name now.
func (s state) withReportedPod() state {
	if !s.isUnrecorded() || s.progress() == nil || s.run.Status.Attempt.PodUID != "" {
		return s
	}
	if pod := s.pod(); pod == nil || reportedByOther(s.run, string(pod.UID)) {
		s.run.Status.Attempt.PodUID = s.run.Status.Progress.PodUID
	}
	return s
}

// reportedByOther reports whether a pod other than that of the first attempt has reported, as far as the operator
// knows.
func reportedByOther(run *v1alpha1.Run, podUID string) bool {
	p := run.Status.Progress
	return p != nil && p.PodUID != "" && p.PodUID != podUID
}

// withoutReport returns the state of a Run without a report that came from a pod of another Run. The attempt must be
// reserved, so that this pod cannot report again.
func (s state) withoutReport() state {
	return s.assume(func(status *v1alpha1.RunStatus) { status.Progress = nil })
}

// sameReporter tests that no other pod has reported since the status was read. If the first attempt has two pods, the
// first that reports is recorded.
func sameReporter(p *v1alpha1.RunProgress) statuspatch.Op {
	switch {
	case p == nil:
		return statuspatch.Same("/status/progress", nil)
	case p.PodUID == "":
		return statuspatch.Same("/status/progress/podUID", nil)
	}
	return statuspatch.Same("/status/progress/podUID", p.PodUID)
}
