package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
	"github.com/deckhand-dev/deckhand/internal/cluster/statuspatch"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
)

// The first attempt of a Run without a volume is not reserved by a write: its pod is created, and the next write of the
// status records it. docs/designs/018 has the reasons.

// recordDelay is how long the status may lack an attempt whose pod exists: if the Run ends meanwhile, that saves a
// write.
const recordDelay = 2 * time.Second

// startsUnrecorded reports whether the first attempt of a Run needs no reservation. It needs one with a volume, because
// the next attempt continues from its journal, in a queue, where the reservation takes the place, and if the Run
// continues another, which the reservation records. Without it, the admission policy recognizes the pod by the name of the Run.
func startsUnrecorded(s state) bool {
	return !s.recorded.differs() && !s.durable() && s.run.Spec.ContinueFrom == nil && s.position.Limit == 0 && runnerpod.Name(s.run.Name, 1) == s.run.Name+"-1"
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

// notYetRecorded returns how long the first write of the status is delayed; 0: it is due. It is delayed while there is
// nothing to report except the pod of the first attempt, which this process created and remembers.
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

// maxUnrecorded is how many unrecorded attempts are kept: more than pods are created within recordDelay. The entry of a
// Run that is deleted before it is recorded remains.
const maxUnrecorded = 4096

// unrecorded has the attempts whose pods this process created and has not recorded yet, by the UID of the Run. Attempts
// that are not in it are found by their pods. If a pod is lost before it was recorded, its entry makes it count as
// lost.
type unrecorded struct {
	mu       sync.Mutex
	attempts map[types.UID]unrecordedAttempt
	stopping bool
}

type unrecordedAttempt struct {
	run     client.ObjectKey
	attempt v1alpha1.Attempt
}

func newUnrecorded() *unrecorded { return &unrecorded{attempts: map[types.UID]unrecordedAttempt{}} }

func (u *unrecorded) get(run types.UID) *v1alpha1.Attempt {
	u.mu.Lock()
	defer u.mu.Unlock()
	a, has := u.attempts[run]
	if !has {
		return nil
	}
	return &a.attempt
}

// remember keeps the attempt of a Run. If there are too many entries, any one is dropped, because its attempt can be
// found by its pod.
func (u *unrecorded) remember(run *v1alpha1.Run, a v1alpha1.Attempt) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for uid := range u.attempts {
		if len(u.attempts) < maxUnrecorded {
			break
		}
		delete(u.attempts, uid)
	}
	u.attempts[run.UID] = unrecordedAttempt{client.ObjectKeyFromObject(run), a}
}

func (u *unrecorded) forget(run types.UID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.attempts, run)
}

// stop ends the delay: from now on attempts are recorded immediately. It returns the Runs with unrecorded attempts.
func (u *unrecorded) stop() []client.ObjectKey {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.stopping = true
	runs := make([]client.ObjectKey, 0, len(u.attempts))
	for _, a := range u.attempts {
		runs = append(runs, a.run)
	}
	return runs
}

func (u *unrecorded) isStopping() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.stopping
}

// recordTimeout bounds how long attempts are recorded after the operator is stopped. It is less than the 30 s that the
// manager waits for its runnables.
const recordTimeout = 10 * time.Second

// recordOnStop waits until the operator is stopped and then records all unrecorded attempts. Otherwise the next
// operator, which may have another version, would have to find and compare their pods.
func (r *Reconciler) recordOnStop(ctx context.Context) error {
	<-ctx.Done()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), recordTimeout)
	defer cancel()
	var all errgroup.Group
	all.SetLimit(defaultConcurrency)
	for _, key := range r.unrecorded.stop() {
		all.Go(func() error { return r.recordNow(ctx, key) })
	}
	return all.Wait()
}

// recordNow reconciles a Run once. After a conflict the status was written by another process.
func (r *Reconciler) recordNow(ctx context.Context, key client.ObjectKey) error {
	var run v1alpha1.Run
	found, err := apierr.Found(r.client.Get(ctx, key, &run))
	if found && err == nil {
		_, err = r.Reconcile(ctx, &run)
	}
	if err == nil || apierr.IsConflict(err) || errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return fmt.Errorf("recording the attempt of Run %s: %w", key, err)
}

// Before the first attempt is recorded, the API server accepts reports of any runner pod with its name. What follows
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
//     changed since; that of a Run that continues another is always reserved.
func (s state) withReporter(pod *corev1.Pod, revision string) state {
	uid := s.run.Status.Progress.PodUID
	switch {
	case pod != nil && string(pod.UID) == uid && isFirst(pod, s.run):
		return s.withAttempt(attemptOfPod(pod, revision, s.now))
	case pod != nil && string(pod.UID) == uid, !startsUnrecorded(s) && s.run.Status.Progress.Effects != v1alpha1.EffectsBegun, s.run.Spec.ContinueFrom != nil:
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
