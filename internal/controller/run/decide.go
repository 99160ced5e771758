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
var rules = []func(world) (plan, bool){
	requestFailed, // a request of the first plan failed: say so, and try again
	outdated,      // the Run changed meanwhile: look again
	deleted,       // it is being deleted: owner references do the rest
	settled,       // a finished Run never moves again; its pods and itself are tidied up
	restored,      // a backup brought it back without its status: not done twice
	tooNew,        // its runner speaks a protocol that this operator does not know
	mismatched,    // the runner acted on what nobody decided
	committed,     // the runner stands by a result: done, or try again
	expired,       // its deadline has passed
	stopped,       // a person asked it to stop
	unguarded,     // the admission policies are missing: no pod is safe
	held,          // it was paused before it began
	unreadable,    // its revision is of a format that this operator does not read
	unresolved,    // its Agent is not there, or not ready: wait
	unfit,         // what it is given is not what its Agent takes
	oversized,     // its task does not fit a pod
	queued,        // its Agent has a bound on active Runs, and its turn has not come
	unclaimed,     // nothing in the way: take the first attempt
	uncreated,     // the attempt has no pod yet: make it, or find it
	released,      // its runner left on purpose, until somebody decides
	lost,          // its pod is gone
	ended,         // its runner ended without a result
	overrun,       // its runner outlived limits.duration
	paused,        // a person asked it to hold, or to go on
	unsaid,        // people decided something that the runner has not been told
	delegating,    // the runner asks for a child Run
	starting,      // its pod has not started the runner yet
	underway,      // the runner works
}

// decide is arithmetic: from what was seen to what to do. Whatever an active
// Run waits for, it looks up when its deadline passes.
func decide(w world) plan {
	for _, rule := range rules {
		p, applies := rule(w)
		if !applies {
			continue
		}
		if !w.facts.applied {
			p.setStates, p.restore = steered(w, p), restorations(w)
		}
		if d := w.limits().deadline; d > 0 && w.run.Status.CompletionTime == nil && w.run.DeletionTimestamp.IsZero() && !p.settles() {
			p.wake = sooner(p.wake, max(w.run.CreationTimestamp.Add(d).Sub(w.now), time.Second))
		}
		return p
	}
	return plan{}
}

func deleted(w world) (plan, bool) {
	return plan{}, !w.run.DeletionTimestamp.IsZero()
}

func restored(w world) (plan, bool) {
	if w.attempt() > 0 {
		return plan{}, false
	}
	o, is := runstatus.Restored(w.run)
	return plan{}.saying(o), is
}

func committed(w world) (plan, bool) {
	r := w.committed()
	if r == nil {
		return plan{}, false
	}
	p := judge(w, verdictOf(*r))
	if told := w.progress(); told == nil || told.Result == nil || !told.Result.Committed {
		p.lastWord = runnerpod.Termination(w.pod())
	}
	return p, true
}

func expired(w world) (plan, bool) {
	d := w.limits().deadline
	if d == 0 || w.now.Before(w.run.CreationTimestamp.Add(d)) {
		return plan{}, false
	}
	return failure(v1alpha1.ReasonDeadlineExceeded, fmt.Sprintf("The Run did not finish within limits.deadline (%s after its creation). Raise limits.deadline and create a new Run", d)), true
}

// stopGrace is how long a runner has to reach a safe point once told to stop.
const stopGrace = 30 * time.Second

func stopped(w world) (plan, bool) {
	if w.run.Spec.DesiredState != v1alpha1.DesiredStopped {
		return plan{}, false
	}
	end := failure(v1alpha1.ReasonStopped, "Stopped by spec.desiredState")
	pod := w.pod()
	if !runnerpod.IsAlive(pod) || w.progress() == nil {
		return end, true
	}
	told := runnerpod.SignalsIn(pod)
	if !told.Stop {
		p := waiting(v1alpha1.ReasonStopping, "Waiting for the runner to reach a safe point", stopGrace)
		told.Stop, told.At = true, w.now.Unix()
		p.signal, p.say = pod, told
		return p, true
	}
	if left := stopGrace - w.now.Sub(time.Unix(told.At, 0)); left > 0 {
		return waiting(v1alpha1.ReasonStopping, "Waiting for the runner to reach a safe point", left), true
	}
	end.message = fmt.Sprintf("Stopped by spec.desiredState; the runner reached no safe point within %s", stopGrace)
	return end, true
}

// guardInterval is how soon missing policies are looked for again.
const guardInterval = 15 * time.Second

func unguarded(w world) (plan, bool) {
	if w.unguarded == "" || w.pod() != nil {
		return plan{}, false
	}
	return waiting(v1alpha1.ReasonPending, "No runner is started while the cluster does not have "+w.unguarded+". Install the chart of Deckhand again, or apply config/default", guardInterval), true
}

// unreadable waits for an operator that can read the revision of the Run, or fails the
// Run if only an operator of the past could. A runner that lives goes on meanwhile.
func unreadable(w world) (plan, bool) {
	if w.unsupported == nil || w.pod() != nil {
		return plan{}, false
	}
	message := runstatus.UnreadableRevision("Agent", w.run.Spec.Agent, w.unsupported)
	if !w.unsupported.IsNewer() {
		return failure(v1alpha1.ReasonRevisionUnsupported, message), true
	}
	return waiting(v1alpha1.ReasonRevisionUnsupported, message, 0), true
}

func unresolved(w world) (plan, bool) {
	if w.version != nil || w.pod() != nil {
		return plan{}, false
	}
	if w.attempt() > 0 || pinned(w.run) != "" {
		return failure(v1alpha1.ReasonMisconfigured, w.obstacle), true
	}
	return patiently(w, v1alpha1.ReasonPending, w.obstacle), true
}

// maxTask is the most bytes of a task. All annotations of a pod share 256 KiB
// with the signals, and each Run costs the cluster's store several copies.
const maxTask = 48 << 10

func oversized(w world) (plan, bool) {
	if w.attempt() > 0 {
		return plan{}, false
	}
	size := len(encode(runnerpod.TaskOf(podInputOf(w, 1))))
	if size <= maxTask {
		return plan{}, false
	}
	return failure(v1alpha1.ReasonTaskTooLarge, fmt.Sprintf("The task has %d bytes; at most %d fit a pod. Shorten spec.prompt and spec.input, or move long texts into files of the workspace", size, maxTask)), true
}

func unclaimed(w world) (plan, bool) {
	if w.attempt() > 0 {
		return plan{}, false
	}
	p := waiting(v1alpha1.ReasonStarting, "Starting attempt 1", 0)
	p.claim = nextAttempt(w, chargeNone)
	return p, true
}

func uncreated(w world) (plan, bool) {
	if w.run.Status.Attempt.PodUID != "" {
		return plan{}, false
	}
	if p, is := volumeNotCreated(w); is {
		return p, true
	}
	if p, is := podNotCreated(w); is {
		return p, true
	}
	reason, message := beginning(w)
	p := waiting(reason, message, 0)
	switch pod := w.pod(); {
	case pod != nil:
		p = adopted(w, p, pod)
		p.remove = append(p.remove, waitedPods(w)...)
		return p, true
	case w.version.Hash != w.run.Status.Attempt.AgentRevision:
		// The Agent changed, and its old version went, between claim and pod.
		p.claim = nextAttempt(w, chargeNone)
		p.claim.AgentRevision = w.version.Hash
	default:
		if lost, is := volumeLost(w); is {
			return lost, true
		}
		if leaves, is := volumeLeaves(w); is {
			return leaves, true
		}
		p.create, p.remove = runnerpod.New(podInputOf(w, w.attempt())), waitedPods(w)
	}
	return p, true
}

func lost(w world) (plan, bool) {
	if w.pod() != nil {
		return plan{}, false
	}
	return judge(w, verdict{charge: chargeGround, reason: v1alpha1.ReasonPodLost, message: fmt.Sprintf("pod %s no longer exists", w.run.Status.Attempt.Pod)}), true
}

func ended(w world) (plan, bool) {
	pod := w.pod()
	if runnerpod.IsAlive(pod) {
		return plan{}, false
	}
	return judge(w, verdictOfPod(pod)), true
}

// settleInTime is how long a runner's first report may go without saying so: a
// short Run is over by then and saves a write.
const settleInTime = time.Second

func underway(w world) (plan, bool) {
	p := w.progress()
	told := runnerpod.SignalsIn(w.pod())
	heard := sooner(unheardIn(w, told), brakingIn(w, told))
	if reason, message := waitsFor(w); reason != "" {
		return waiting(reason, message, heard), true
	}
	// The runner's clock may be off; one that is ahead must not hold this back.
	if age := w.now.Sub(time.UnixMilli(p.Sequence)); age >= 0 && age < settleInTime && reasonOf(w.run) != v1alpha1.ReasonRunning {
		return waiting(reasonOf(w.run), messageOf(w.run), settleInTime-age), true
	}
	if told.Pause {
		return waiting(v1alpha1.ReasonRunning, toldPausing, sooner(overrunIn(w), heard)), true
	}
	text := fmt.Sprintf("Attempt %d is at work", w.attempt())
	if pod := w.pod(); pod.DeletionTimestamp != nil {
		text = fmt.Sprintf("Attempt %d is ending, because pod %s is being deleted", w.attempt(), pod.Name)
	}
	if w.attempt() > 1 {
		text += fmt.Sprintf(" (%s, %s before it)", count(w.run.Status.Failures, "failure"), count(w.run.Status.Disruptions, "disruption"))
	}
	return waiting(v1alpha1.ReasonRunning, text, sooner(overrunIn(w), heard)), true
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
