package run

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
)

// leaveGrace is how long a runner may take to exit after its result is committed.
const leaveGrace = time.Minute

// finished deletes the objects of a finished Run: pods after their retention, then its volume, at last the Run itself.
func finished(s state) (plan, bool) {
	if s.run.Status.CompletionTime == nil {
		return plan{}, false
	}
	age := runstatus.SinceCompletion(s.run, s.now)
	var p plan
	if last := s.pod(); age < leaveGrace && (last == nil || runnerpod.IsAlive(last)) {
		p.wake = leaveGrace - age // for a pod that the cache shows late, or that does not end
	}
	for _, pod := range s.pods {
		if left := retentionOf(s, &pod) - age; left > 0 {
			p.wake = earlier(p.wake, left)
		} else if pod.DeletionTimestamp == nil {
			p.remove = append(p.remove, pod)
		}
	}
	p = deleteExpiredVolume(s, p)
	if kept := runstatus.OutcomeWithTTLNote(s.run); kept != runstatus.OutcomeOf(s.run.Status) {
		p = p.withOutcome(kept)
	}
	return deleteExpired(s, p), true
}

// deleteExpired deletes a finished Run after its TTL. The default TTL does not shorten the retention
// of the Agent: the Run then stays as long as its pods and its volume.
func deleteExpired(s state, p plan) plan {
	left, goes := expiresAfter(s)
	keeps := len(s.pods) > 0 || s.volume != nil && !s.sharesVolume()
	switch {
	case !goes:
	case left > 0:
		p.wake = earlier(p.wake, left)
	case s.isNeeded:
		p.wake = earlier(p.wake, neededWait)
	case s.run.Spec.TTLSecondsAfterFinished != nil || !keeps:
		p.deleteRun = true
	case p.wake == 0:
		p.wake = time.Minute // they are about to go
	}
	return p
}

// deleteExpiredVolume deletes the volume of a finished Run after its retention, when no pod mounts it. Kubernetes keeps
// a PersistentVolumeClaim while any pod names it, even a pod that has ended.
func deleteExpiredVolume(s state, p plan) plan {
	done, left := volumeExpired(s)
	switch {
	case !done:
		p.wake = earlier(p.wake, left)
	case s.isNeeded:
		p.wake = earlier(p.wake, neededWait)
	case len(p.remove) > 0 || slices.ContainsFunc(s.pods, isLeaving):
		p.wake = earlier(p.wake, time.Second)
	case len(s.pods) > 0: // they stay for their logs: p.wake is when the first goes
	default:
		p.deleteVolume = s.volume
	}
	return p
}

// neededWait is how often a finished Run whose files another Run needs is reconciled.
const neededWait = time.Minute

// isLeaving reports whether a pod is being deleted or still runs.
func isLeaving(pod corev1.Pod) bool { return pod.DeletionTimestamp != nil || runnerpod.IsAlive(&pod) }

// retentionOf returns how long after the end of the Run a pod may stay.
func retentionOf(s state, pod *corev1.Pod) time.Duration {
	switch {
	case !runnerpod.IsAlive(pod):
		return runnerpod.Retention(pod, runnerpod.DefaultRetention)
	case s.committed() != nil:
		return leaveGrace // it is about to end by itself
	default:
		return 0
	}
}

// earlier returns the shorter of two delays, where 0 means never.
func earlier(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// expiresAfter returns how long a finished Run is kept by its TTL; false: it is not deleted. The TTL does not run while
// the parent is active.
func expiresAfter(s state) (left time.Duration, goes bool) {
	if s.parentIsActive() {
		return 0, false
	}
	ttl, goes := runstatus.TTL(s.run, s.defaultTTL)
	age := runstatus.SinceCompletion(s.run, s.now)
	if since, known := s.sinceParentEnded(); known {
		age = min(age, since)
	}
	return ttl - age, goes
}

// parentIsActive reports whether the parent of the Run is active: it may still read the
// result.
func (s state) parentIsActive() bool {
	return len(s.ancestors) > 0 && s.ancestors[0].Run != nil && s.ancestors[0].Run.Status.CompletionTime == nil
}

// sinceParentEnded returns how long ago the parent ended; false: not known.
func (s state) sinceParentEnded() (age time.Duration, ok bool) {
	if len(s.ancestors) == 0 || s.ancestors[0].Run == nil || s.ancestors[0].Run.Status.CompletionTime == nil {
		return 0, false
	}
	return s.now.Sub(s.ancestors[0].Run.Status.CompletionTime.Time), true
}
