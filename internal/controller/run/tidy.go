package run

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/deckhand-dev/deckhand/internal/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/runstatus"
)

// leaveGrace is how long a runner may take to exit by itself once its result
// is committed.
const leaveGrace = time.Minute

// defaultRetention is how long pods stay that do not say.
const defaultRetention = time.Hour

// settled tidies up after a finished Run: pods that still live and should not,
// ended pods after their retention, in the end the Run itself.
func settled(w world) (plan, bool) {
	if w.run.Status.CompletionTime == nil {
		return plan{}, false
	}
	age := runstatus.SinceCompletion(w.run, w.now)
	var p plan
	if age < leaveGrace {
		p.wake = leaveGrace - age // for a pod that the cache shows late
	}
	for _, pod := range w.pods {
		if left := stays(w, &pod) - age; left > 0 {
			p.wake = sooner(p.wake, left)
		} else if pod.DeletionTimestamp == nil {
			p.remove = append(p.remove, pod)
		}
	}
	p = freed(w, p)
	if kept := runstatus.OutcomeWithTTLNote(w.run); kept != runstatus.OutcomeOf(w.run.Status) {
		p = p.saying(kept)
	}
	if left, goes := staysYet(w); goes && left > 0 {
		p.wake = sooner(p.wake, left)
	} else if goes {
		p.forget = true
	}
	return p, true
}

// freed deletes the claim of a finished Run once it has stayed as long as it was to and
// no pod has it. Kubernetes keeps a claim that a pod names, also one that has ended:
// deleted before its pods it would be Terminating until they are gone.
func freed(w world, p plan) plan {
	done, left := outlived(w)
	switch {
	case !done:
		p.wake = sooner(p.wake, left)
	case len(p.remove) > 0 || slices.ContainsFunc(w.pods, isLeaving):
		p.wake = sooner(p.wake, time.Second)
	case len(w.pods) > 0: // they stay for their logs: p.wake is when the first goes
	default:
		p.free = w.claim
	}
	return p
}

// isLeaving reports whether a pod is about to go: it is being deleted, or still runs.
func isLeaving(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil || runnerpod.IsAlive(&pod) }

// stays is how long after the end a pod may stay.
func stays(w world, pod *corev1.Pod) time.Duration {
	switch {
	case !runnerpod.IsAlive(pod):
		return runnerpod.Retention(pod, defaultRetention)
	case w.committed() != nil:
		return leaveGrace // it is about to end by itself
	default:
		return 0
	}
}

// sooner is the lesser of two wakes, where 0 means never.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}
