package run

import (
	"fmt"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/run/children"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// rules are all rules of a Run of an Agent, most important first: the first that applies decides. Each line names the
// condition, and the reason of Succeeded.
var rules = []func(state) (plan, bool){
	requestFailed,       // a request of this Reconcile failed: the same reason, or Pending and in the end PendingTimeout
	outdated,            // the Run has changed since it was read: no change
	beingDeleted,        // the Run is being deleted, and what it owns with it: no change
	finished,            // the Run has ended: no change; expired pods, volumes and the Run itself are deleted
	restoredFromBackup,  // a backup tool created the Run without its status: Restored
	reused,              // a workflow is retried, and the work was done before: Reused, or NothingToContinue
	protocolUnsupported, // the runner is newer than the operator: Misconfigured
	podFound,            // the first attempt has a pod of an earlier operator: Starting; or SandboxAltered
	decisionMissing,     // the runner acted on a Decision that does not exist or says something else: DecisionMismatch
	committed,           // the runner committed a result: its reason, or Retrying
	expired,             // limits.deadline has passed: DeadlineExceeded
	stopped,             // desiredState is Stopped: Stopping, then Stopped
	policiesUnchecked,   // the operator has just started and knows of no admission policies yet: no change
	policiesMissing,     // admission policies are missing, so no pod would be safe: Pending
	pausedBeforeStart,   // desiredState is Paused, and there was no attempt yet: Paused
	revisionUnsupported, // the revision was stored by another version of the operator: RevisionUnsupported
	agentNotReady,       // there is no revision to run: Pending, then PendingTimeout; or Misconfigured
	inputInvalid,        // the input does not fit the Agent: Misconfigured, or TaskTooLarge
	oversized,           // the task does not fit a pod: TaskTooLarge
	sourceNotReady,      // the Run continues another: Queued, Pending, or why it cannot: Misconfigured, NothingToContinue
	queued,              // concurrency of the Agent is reached: Queued
	notStarted,          // nothing prevents the first attempt: Starting
	podMissing,          // the attempt has no pod yet: Starting, or why the API server refused its pod or volume
	suspended,           // the runner ended on purpose, to wait: Paused, or what it waits for; then Starting
	duplicatePod,        // the pod was lost before it was recorded, and created again: Retrying; the second one is deleted
	podLost,             // the pod does not exist any more: Retrying, or how the Run ends
	ended,               // the runner ended without a result: Retrying, or how the Run ends
	overrun,             // the runner did not end within limits.duration: DurationLimit
	paused,              // desiredState changed to or from Paused: no change; the runner gets a signal
	signalsPending,      // the runner has not received a Decision or a result of a child Run: no change; it gets a signal
	delegating,          // the runner asks for a child Run: no change, or why it cannot be created
	starting,            // the runner has not reported yet: Starting, or what keeps its pod from starting
	running,             // the runner reports: Running, or what it waits for
}

// decide returns the plan of the first rule that applies. An active Run is always reconciled when its deadline passes.
func decide(s state) plan {
	for _, rule := range rules {
		p, applies := rule(s)
		if !applies {
			continue
		}
		if !s.facts.applied {
			p.setStates, p.restore = childStateChanges(s, p), restorations(s)
		}
		if d := s.limits().deadline; d > 0 && s.run.Status.CompletionTime == nil && s.run.DeletionTimestamp.IsZero() && !p.settles() {
			p.wake = earlier(p.wake, max(s.run.CreationTimestamp.Add(d).Sub(s.now), time.Second))
		}
		return p
	}
	return plan{}
}

func beingDeleted(s state) (plan, bool) {
	return plan{}, !s.run.DeletionTimestamp.IsZero()
}

func restoredFromBackup(s state) (plan, bool) {
	if s.attempt() > 0 {
		return plan{}, false
	}
	o, is := runstatus.Restored(s.run)
	return plan{}.withOutcome(o), is
}

func committed(s state) (plan, bool) {
	r := s.committed()
	if r == nil {
		return plan{}, false
	}
	outcome := outcomeOfResult(*r)
	if gaveUp(s, r) {
		outcome.final, outcome.message = true, afterOutage(s, outcome.message)
	}
	p := endAttempt(s, outcome)
	if told := s.progress(); told == nil || told.Result == nil || !told.Result.Committed {
		p.termination = runnerpod.Termination(s.pod())
	}
	return p, true
}

func expired(s state) (plan, bool) {
	d := s.limits().deadline
	if d == 0 || s.now.Before(s.run.CreationTimestamp.Add(d)) {
		return plan{}, false
	}
	if p := s.progress(); p != nil && p.ModelWait != nil {
		return failure(v1alpha1.ReasonDeadlineExceeded, fmt.Sprintf("The Run did not finish within limits.deadline (%s after its creation): %s. Correct the server of the Model or raise limits.deadline, and create a new Run", d, unavailable(p.ModelWait))), true
	}
	return failure(v1alpha1.ReasonDeadlineExceeded, fmt.Sprintf("The Run did not finish within limits.deadline (%s after its creation). Raise limits.deadline and create a new Run", d)), true
}

// stopGrace is how long a runner has to reach a safe point after the signal to stop.
const stopGrace = 30 * time.Second

func stopped(s state) (plan, bool) {
	if s.run.Spec.DesiredState != v1alpha1.DesiredStopped {
		return plan{}, false
	}
	end := failure(v1alpha1.ReasonStopped, "Stopped by spec.desiredState")
	pod := s.pod()
	if !runnerpod.IsAlive(pod) || s.progress() == nil {
		return end, true
	}
	told := runnerpod.SignalsIn(pod)
	if !told.Stop {
		p := waiting(v1alpha1.ReasonStopping, "Waiting for the runner to reach a safe point", stopGrace)
		told.Stop, told.At = true, s.now.Unix()
		p.signal, p.signals = pod, told
		return p, true
	}
	if left := stopGrace - s.now.Sub(time.Unix(told.At, 0)); left > 0 {
		return waiting(v1alpha1.ReasonStopping, "Waiting for the runner to reach a safe point", left), true
	}
	end.message = fmt.Sprintf("Stopped by spec.desiredState; the runner reached no safe point within %s", stopGrace)
	return end, true
}

// guardInterval is how often missing policies are checked.
const guardInterval = 15 * time.Second

// policiesUnchecked waits for the first check, which a new operator does immediately.
func policiesUnchecked(s state) (plan, bool) {
	return plan{wake: time.Second}, s.policiesUnknown && s.pod() == nil
}

func policiesMissing(s state) (plan, bool) {
	if s.missingPolicies == "" || s.pod() != nil {
		return plan{}, false
	}
	return waiting(v1alpha1.ReasonPending, "No runner is started while the cluster does not have "+s.missingPolicies+". Install the chart of Deckhand again, or apply config/default", guardInterval), true
}

// revisionUnsupported waits for an operator that can read the revision, or ends the Run if only an older one could. An
// active runner continues meanwhile.
func revisionUnsupported(s state) (plan, bool) {
	if s.unsupported == nil || s.pod() != nil {
		return plan{}, false
	}
	return unreadableRevision(s), true
}

func unreadableRevision(s state) plan {
	message := runstatus.UnreadableRevision("Agent", s.run.Spec.Agent, s.unsupported)
	if !s.unsupported.IsNewer() {
		return failure(v1alpha1.ReasonRevisionUnsupported, message)
	}
	return waiting(v1alpha1.ReasonRevisionUnsupported, message, 0)
}

func agentNotReady(s state) (plan, bool) {
	if s.revision != nil || s.pod() != nil {
		return plan{}, false
	}
	if s.attempt() > 0 || children.FixedRevision(s.run) != "" {
		return failure(v1alpha1.ReasonMisconfigured, s.notReadyMessage), true
	}
	return waitingBounded(s, v1alpha1.ReasonPending, s.notReadyMessage), true
}

func oversized(s state) (plan, bool) {
	if s.attempt() > 0 {
		return plan{}, false
	}
	if problem := runnerpod.TaskProblem(podInputOf(s, 1)); problem != "" {
		return failure(v1alpha1.ReasonTaskTooLarge, problem), true
	}
	return plan{}, false
}

func notStarted(s state) (plan, bool) {
	if s.attempt() > 0 {
		return plan{}, false
	}
	p := waiting(v1alpha1.ReasonStarting, "Starting attempt 1", 0)
	p.nextAttempt = nextAttempt(s, budgetNone)
	p.nextAttempt.unrecorded = startsUnrecorded(s)
	return p, true
}

func podMissing(s state) (plan, bool) {
	if s.run.Status.Attempt.PodUID != "" {
		return plan{}, false
	}
	if s.progress() != nil && s.pod() == nil { // it reported before the attempt was recorded
		return podLost(s)
	}
	if p, is := volumeNotCreated(s); is {
		return p, true
	}
	if p, is := podNotCreated(s); is {
		return p, true
	}
	reason, message := startMessage(s)
	p := waiting(reason, message, 0)
	switch pod := s.pod(); {
	case pod != nil:
		p = recordPod(s, p, pod)
		p.remove = append(p.remove, podsThatWaited(s)...)
		return p, true
	case wantsPause(s):
		return waiting(v1alpha1.ReasonPaused, children.PausedMessage(s.run), 0), true
	case s.revision.Hash != s.run.Status.Attempt.AgentRevision:
		// The Agent changed, and its old revision went, between reservation and pod.
		p.nextAttempt = nextAttempt(s, budgetNone)
		p.nextAttempt.AgentRevision = s.revision.Hash
	default:
		for _, rule := range []func(state) (plan, bool){volumeLost, volumeTerminating, sourceLost, sourceInUse, fileOwnerRefused} {
			if without, is := rule(s); is {
				return without, true
			}
		}
		p.create, p.remove = runnerpod.New(podInputOf(s, s.attempt())), podsThatWaited(s)
	}
	return p, true
}

func podLost(s state) (plan, bool) {
	if s.pod() != nil {
		return plan{}, false
	}
	return endAttempt(s, attemptOutcome{budget: budgetDisruptions, reason: v1alpha1.ReasonPodLost, message: fmt.Sprintf("pod %s no longer exists", s.run.Status.Attempt.Pod)}), true
}

func ended(s state) (plan, bool) {
	pod := s.pod()
	if runnerpod.IsAlive(pod) {
		return plan{}, false
	}
	return endAttempt(s, outcomeOfPod(pod)), true
}

// settleInTime is how long a runner may work before the Run is shown as Running. A Run that ends earlier saves a write.
const settleInTime = time.Second

// atWorkFor returns how long the runner has worked. Its first report comes after about a second, or at once if effects
// begin or an older runner starts; the kubelet may report its start later. The result is negative if a clock is ahead.
func atWorkFor(s state) time.Duration {
	begun := time.UnixMilli(s.progress().Sequence)
	if container := runnerpod.RunnerStatus(s.pod()); container != nil && container.State.Running != nil && container.State.Running.StartedAt.Time.Before(begun) {
		begun = container.State.Running.StartedAt.Time
	}
	return s.now.Sub(begun)
}

func running(s state) (plan, bool) {
	told := runnerpod.SignalsIn(s.pod())
	heard := earlier(signalRetryIn(s, told), pauseRetryIn(s, told))
	if reason, message := waitsFor(s); reason != "" {
		return waiting(reason, message, earlier(heard, outageEndsIn(s))), true
	}
	// The runner's clock may be wrong. A clock that is ahead must not delay the decision.
	if age := atWorkFor(s); age >= 0 && age < settleInTime && reasonOf(s.run) != v1alpha1.ReasonRunning {
		return waiting(reasonOf(s.run), messageOf(s.run), settleInTime-age), true
	}
	if told.Pause {
		return waiting(v1alpha1.ReasonRunning, pausingMessage, earlier(overrunIn(s), heard)), true
	}
	text := fmt.Sprintf("Attempt %d is at work", s.attempt())
	if pod := s.pod(); pod.DeletionTimestamp != nil {
		text = fmt.Sprintf("Attempt %d is ending, because pod %s is being deleted", s.attempt(), pod.Name)
	}
	if s.attempt() > 1 {
		text += fmt.Sprintf(" (%s, %s before it)", count(s.run.Status.Failures, "failure"), count(s.run.Status.Disruptions, "disruption"))
	}
	return waiting(v1alpha1.ReasonRunning, text, earlier(overrunIn(s), heard)), true
}

func count(n int32, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// sentence makes a message of parts, skipping empty ones.
func sentence(parts ...string) string {
	kept := parts[:0]
	for _, p := range parts {
		if p != "" {
			kept = append(kept, p)
		}
	}
	return strings.Join(kept, ": ")
}

// inputInvalid ends a Run whose input or limits do not fit its Agent, before a pod exists.
func inputInvalid(s state) (plan, bool) {
	if s.attempt() > 0 {
		return plan{}, false
	}
	p := snapshot.CheckRun(s.run.Spec, s.revision.Snapshot.Agent)
	if p == nil && children.ParentOf(s.run) == nil { // the operator itself chose the limits of a child Run
		p = snapshot.CheckLimits(s.run.Spec.Limits, snapshot.MostOfRevision(s.revision), "Agent "+s.run.Spec.Agent)
	}
	if p == nil {
		p = snapshot.CheckCost(s.run.Spec.Limits, s.revision.Snapshot.Models)
	}
	switch {
	case p == nil:
		return plan{}, false
	case p.Reason == v1alpha1.ReasonMisconfigured:
		return failure(p.Reason, p.Message+"; create another Run"), true
	default:
		return failure(p.Reason, p.Message), true
	}
}

// protocolVersion returns the version of the protocol that the runner of the current attempt uses, in its report or its
// termination message; 0: not known.
func (s state) protocolVersion() int {
	version := 0
	if p := s.progress(); p != nil {
		version = int(p.Version)
	}
	if t := runnerpod.Termination(s.pod()); t != nil && t.Attempt == int(s.attempt()) {
		version = max(version, t.Version)
	}
	return version
}

// protocolUnsupported fails a Run whose runner uses a newer protocol than this operator supports: its reports could
// mean something else. Older versions are supported, and fields that a version does not have are ignored.
func protocolUnsupported(s state) (plan, bool) {
	version := s.protocolVersion()
	if version <= task.Version {
		return plan{}, false
	}
	return failure(v1alpha1.ReasonMisconfigured, fmt.Sprintf(
		"The runner of attempt %d speaks version %d of the protocol between runner and operator; this operator knows versions up to %d. Upgrade the operator, or use the runner image of its release, and create a new Run",
		s.attempt(), version, task.Version)), true
}
