package run

import (
	"fmt"
	"strings"
	"time"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/runstatus"
)

// rules are the whole policy of a Run, most pressing first. The first that
// applies decides; to learn what the controller does, read this list.
var rules = []func(state) (plan, bool){
	requestFailed,       // a request of the first plan failed: say so, and try again
	outdated,            // the Run changed meanwhile: look again
	beingDeleted,        // it is being deleted: owner references do the rest
	finished,            // a finished Run never moves again; its pods and itself are tidied up
	restoredFromBackup,  // a backup brought it back without its status: not done twice
	protocolUnsupported, // its runner speaks a protocol that this operator does not know
	decisionMissing,     // the runner acted on what nobody decided
	committed,           // the runner stands by a result: done, or try again
	expired,             // its deadline has passed
	stopped,             // a person asked it to stop
	policiesMissing,     // the admission policies are missing: no pod is safe
	pausedBeforeStart,   // it was paused before it began
	revisionUnsupported, // its revision is of a format that this operator does not read
	agentNotReady,       // its Agent is not there, or not ready: wait
	inputInvalid,        // what it is given is not what its Agent takes
	oversized,           // its task does not fit a pod
	queued,              // its Agent has a bound on active Runs, and its turn has not come
	notStarted,          // nothing in the way: take the first attempt
	podMissing,          // the attempt has no pod yet: make it, or find it
	suspended,           // its runner left on purpose, until somebody decides
	podLost,             // its pod is gone
	ended,               // its runner ended without a result
	overrun,             // its runner outlived limits.duration
	paused,              // a person asked it to hold, or to go on
	signalsPending,      // people decided something that the runner has not been told
	delegating,          // the runner asks for a child Run
	starting,            // its pod has not started the runner yet
	running,             // the runner works
}

// decide is arithmetic: from what was seen to what to do. Whatever an active
// Run waits for, it looks up when its deadline passes.
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
	p := endAttempt(s, outcomeOfResult(*r))
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
	return failure(v1alpha1.ReasonDeadlineExceeded, fmt.Sprintf("The Run did not finish within limits.deadline (%s after its creation). Raise limits.deadline and create a new Run", d)), true
}

// stopGrace is how long a runner has to reach a safe point once told to stop.
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

// guardInterval is how soon missing policies are looked for again.
const guardInterval = 15 * time.Second

func policiesMissing(s state) (plan, bool) {
	if s.missingPolicies == "" || s.pod() != nil {
		return plan{}, false
	}
	return waiting(v1alpha1.ReasonPending, "No runner is started while the cluster does not have "+s.missingPolicies+". Install the chart of Deckhand again, or apply config/default", guardInterval), true
}

// revisionUnsupported waits for an operator that can read the revision of the Run, or fails the
// Run if only an operator of the past could. A runner that lives goes on meanwhile.
func revisionUnsupported(s state) (plan, bool) {
	if s.unsupported == nil || s.pod() != nil {
		return plan{}, false
	}
	message := runstatus.UnreadableRevision("Agent", s.run.Spec.Agent, s.unsupported)
	if !s.unsupported.IsNewer() {
		return failure(v1alpha1.ReasonRevisionUnsupported, message), true
	}
	return waiting(v1alpha1.ReasonRevisionUnsupported, message, 0), true
}

func agentNotReady(s state) (plan, bool) {
	if s.revision != nil || s.pod() != nil {
		return plan{}, false
	}
	if s.attempt() > 0 || fixedRevision(s.run) != "" {
		return failure(v1alpha1.ReasonMisconfigured, s.notReadyMessage), true
	}
	return waitingBounded(s, v1alpha1.ReasonPending, s.notReadyMessage), true
}

// maxTask is the most bytes of a task. All annotations of a pod share 256 KiB
// with the signals, and each Run costs the cluster's store several copies.
const maxTask = 48 << 10

func oversized(s state) (plan, bool) {
	if s.attempt() > 0 {
		return plan{}, false
	}
	size := len(encode(runnerpod.TaskOf(podInputOf(s, 1))))
	if size <= maxTask {
		return plan{}, false
	}
	return failure(v1alpha1.ReasonTaskTooLarge, fmt.Sprintf("The task has %d bytes; at most %d fit a pod. Shorten spec.prompt and spec.input, or move long texts into files of the workspace", size, maxTask)), true
}

func notStarted(s state) (plan, bool) {
	if s.attempt() > 0 {
		return plan{}, false
	}
	p := waiting(v1alpha1.ReasonStarting, "Starting attempt 1", 0)
	p.nextAttempt = nextAttempt(s, budgetNone)
	return p, true
}

func podMissing(s state) (plan, bool) {
	if s.run.Status.Attempt.PodUID != "" {
		return plan{}, false
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
	case s.revision.Hash != s.run.Status.Attempt.AgentRevision:
		// The Agent changed, and its old version went, between claim and pod.
		p.nextAttempt = nextAttempt(s, budgetNone)
		p.nextAttempt.AgentRevision = s.revision.Hash
	default:
		if lost, is := volumeLost(s); is {
			return lost, true
		}
		if leaves, is := volumeTerminating(s); is {
			return leaves, true
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

// settleInTime is how long a runner's first report may go without saying so: a
// short Run is over by then and saves a write.
const settleInTime = time.Second

func running(s state) (plan, bool) {
	p := s.progress()
	told := runnerpod.SignalsIn(s.pod())
	heard := earlier(signalRetryIn(s, told), pauseRetryIn(s, told))
	if reason, message := waitsFor(s); reason != "" {
		return waiting(reason, message, heard), true
	}
	// The runner's clock may be off; one that is ahead must not hold this back.
	if age := s.now.Sub(time.UnixMilli(p.Sequence)); age >= 0 && age < settleInTime && reasonOf(s.run) != v1alpha1.ReasonRunning {
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
