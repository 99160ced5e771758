package run

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
)

// The first attempt of a Run without a volume is not reserved by a write: its pod is created, and the next write of the
// status records it. docs/designs/018 has the reasons.

// recordDelay is how long the status may lack an attempt whose pod exists: if the Run ends meanwhile, that saves a
// write.
const recordDelay = 2 * time.Second

// startsUnrecorded reports whether the first attempt of a Run needs no reservation. It needs one with a volume, because
// the next attempt continues from its journal, and in a queue, where the reservation takes the place. Without it, the
// admission policy recognizes the pod by the name of the Run.
func startsUnrecorded(s state) bool {
	return !s.recorded.differs() && !s.durable() && s.position.Limit == 0 && runnerpod.Name(s.run.Name, 1) == s.run.Name+"-1"
}

// withAttempt returns the state of a Run with its first attempt, which its status does not have yet; nil: there is
// none.
func (s state) withAttempt(a *v1alpha1.Attempt) state {
	if a == nil {
		return s
	}
	since := a.StartedAt
	return s.assume(func(status *v1alpha1.RunStatus) {
		status.Attempt = a.DeepCopy()
		status.StartTime, status.Internal.PendingSince = &since, &since
	})
}

// withFacts returns the state after a plan was applied that prepared the first attempt.
func (s state) withFacts() state {
	a := s.facts.prepared
	s.facts.prepared = nil
	return s.withAttempt(a)
}

// observeFirstAttempt completes the status of a Run whose first attempt is not recorded.
func (r *Reconciler) observeFirstAttempt(ctx context.Context, s state) (state, error) {
	run := s.run
	if run.Status.Attempt != nil || run.Status.CompletionTime != nil {
		r.unrecorded.forget(run.UID)
		return s, nil
	}
	a, podUID, err := r.firstAttempt(ctx, run)
	if err != nil {
		return s, err
	}
	if !reportedByOther(run, podUID) {
		return s.withAttempt(a), nil
	}
	return r.observeReporter(ctx, s)
}

// firstAttempt returns the first attempt of a Run and the UID of its pod, from the memory of this process or from the
// pod; nil: there is none.
func (r *Reconciler) firstAttempt(ctx context.Context, run *v1alpha1.Run) (a *v1alpha1.Attempt, podUID string, err error) {
	if a := r.unrecorded.get(run.UID); a != nil {
		return a, a.PodUID, nil
	}
	name := runnerpod.Name(run.Name, 1)
	pod, found, err := r.podCaches.get(ctx, run, client.ObjectKey{Namespace: run.Namespace, Name: name})
	if err != nil || !found || !isFirst(pod, run) {
		return nil, "", err
	}
	revision, err := r.revisions.hashOf(ctx, run, runnerpod.RevisionName(pod))
	if err != nil {
		return nil, "", err
	}
	return attemptOfPod(pod, revision, r.now()), string(pod.UID), nil
}

// isFirst reports whether a pod belongs to the first attempt of a Run.
func isFirst(pod *corev1.Pod, run *v1alpha1.Run) bool {
	return runnerpod.BelongsTo(pod, run) && runnerpod.AttemptOf(pod) == 1
}

// attemptOfPod returns the first attempt, read from its pod. The UID is left out: it is recorded only after the pod was
// compared with the requested one. The clock of the API server may be ahead.
func attemptOfPod(pod *corev1.Pod, revision string, now time.Time) *v1alpha1.Attempt {
	a := &v1alpha1.Attempt{Number: 1, Pod: pod.Name, AgentRevision: revision, StartedAt: pod.CreationTimestamp}
	if a.StartedAt.After(now) {
		a.StartedAt = metav1.NewTime(now)
	}
	return a
}

// beginFirst prepares the first pod of a Run. It reads the Run from the API server, since no write reserves the
// attempt.
func (r *Reconciler) beginFirst(ctx context.Context, s state, p plan) (facts, error) {
	if err := r.prepare(ctx, s); err != nil {
		return facts{}, err
	}
	var now v1alpha1.Run
	found, err := apierr.Found(r.live.Get(ctx, client.ObjectKeyFromObject(s.run), &now))
	if err != nil {
		return facts{}, fmt.Errorf("getting Run %s: %w", s.run.Name, err)
	}
	if !found || now.UID != s.run.UID || now.Generation != s.run.Generation || !now.DeletionTimestamp.IsZero() ||
		now.Status.Attempt != nil || now.Status.Progress != nil || runstatus.IsFinished(&now) {
		return facts{outdated: true}, nil
	}
	return facts{prepared: p.nextAttempt.Attempt}, nil
}

// notYetRecorded returns for how long the status is not written, because nothing is new but the pod of the first
// attempt, which this process created, and the operator has not written the status yet.
func notYetRecorded(s state, p plan) time.Duration {
	recorded := s.storedRun().Status
	if !s.isUnrecorded() || recorded.ObservedGeneration > 0 || s.facts.failure != nil || p.settles() {
		return 0
	}
	if p.nextAttempt != nil || p.child != nil || p.termination != nil { // the status remembers them
		return 0
	}
	a, was := s.attemptWithPod(), runstatus.OutcomeOf(recorded)
	isNews := p.reason != "" && p.reason != v1alpha1.ReasonStarting && (p.reason != was.Reason || p.message != was.Message)
	if a.PodUID == "" || isNews {
		return 0
	}
	return max(0, a.StartedAt.Add(recordDelay).Sub(s.now))
}

// attemptWithPod returns the current attempt with the UID of its pod.
func (s state) attemptWithPod() v1alpha1.Attempt {
	a := *s.run.Status.Attempt
	if s.facts.created != nil {
		a.PodUID = string(s.facts.created.UID)
	}
	return a
}

// duplicatePod waits until another pod with the name of the current attempt's pod no longer exists: it must not work in
// parallel with the next attempt. Its reports are refused.
func duplicatePod(s state) (plan, bool) {
	a := s.run.Status.Attempt
	if a.PodUID == "" || s.pod() != nil {
		return plan{}, false
	}
	at := slices.IndexFunc(s.pods, func(pod corev1.Pod) bool { return pod.Name == a.Pod && runnerpod.IsAlive(&pod) })
	if at < 0 {
		return plan{}, false
	}
	p := waiting(v1alpha1.ReasonRetrying, fmt.Sprintf("Pod %s was lost and created again before it was recorded; the second one is being deleted", a.Pod), leaveGrace)
	p.remove = notTerminating(s.pods[at : at+1])
	return p, true
}

// podFound records the pod of a first attempt that another process of the operator created. Its reports do not count
// before it was compared with the requested pod. If the revision cannot be read, the comparison is not possible, but
// the Run can still be stopped.
func podFound(s state) (plan, bool) {
	if !s.isUnrecorded() || s.run.Status.Attempt.PodUID != "" || s.pod() == nil || s.unsupported != nil {
		return plan{}, false
	}
	reason, message := startMessage(s)
	return recordPod(s, waiting(reason, message, 0), s.pod()), true
}
