package run

import (
	"cmp"
	"time"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/apierr"
	"github.com/deckhand-dev/deckhand/internal/runstatus"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// requestFailed reports a request that failed, or an observation. None of what its plan was
// to record is recorded, unless that ends the Run: it is decided again.
func requestFailed(w world) (plan, bool) {
	if w.facts.failure == nil {
		return plan{}, false
	}
	p, err := w.facts.failure.plan, w.facts.failure.err
	text := task.Cut(apierr.Describe(err), runstatus.MaxCause)
	var next plan
	switch {
	case runstatus.IsFinished(w.run):
		next = unchanged(w.run, plan{problem: text})
	case p.settles():
		next = plan{reason: p.reason, message: p.message, outcome: p.outcome, lastWord: p.lastWord, problem: text}
	case startsAttempt(w):
		next = cannotStart(w, p, text, err)
	default:
		next = plan{reason: reasonWhile(w, p), message: text}
	}
	next.wake = sooner(sooner(next.wake, p.wake), retryIn(w))
	return next, true
}

// outdated waits until the cache shows what changed since the Run was read.
func outdated(w world) (plan, bool) { return plan{wake: retell}, w.facts.outdated }

// startsAttempt reports whether a Run waits for a pod of its current attempt, or for
// its first attempt.
func startsAttempt(w world) bool {
	return w.run.Status.Attempt == nil || w.run.Status.Attempt.PodUID == ""
}

// cannotStart waits until an attempt can start, limits.pending at most. A failure
// that may pass does not end a Run the first time that it is seen: the Run may have
// waited for something else until then.
func cannotStart(w world, p plan, text string, err error) plan {
	if apierr.IsRefusal(err) {
		return patiently(w, v1alpha1.ReasonPending, text)
	}
	reason := reasonWhile(w, p)
	if runstatus.TrimDeadline(messageOf(w.run)) == text {
		return patiently(w, reason, text)
	}
	return waiting(reason, untilPending(w, text), 0)
}

// reasonWhile is the reason of a Run while a step of it fails. The message of one
// that misses a Secret is repeated until its runner starts (beginning), which another
// message must not be.
func reasonWhile(w world, p plan) string {
	switch reason := cmp.Or(p.reason, reasonOf(w.run)); reason {
	case v1alpha1.ReasonSecretMissing:
		return v1alpha1.ReasonStarting
	default:
		return reason
	}
}

// retryIn is how soon a refused request is sent again: ever less often.
func retryIn(w world) time.Duration {
	since := w.run.CreationTimestamp.Time
	if a := w.run.Status.Attempt; a != nil {
		since = a.StartedAt.Time
	}
	if runstatus.IsFinished(w.run) {
		since = w.run.Status.CompletionTime.Time
	}
	return max(minRefusedWait, min(w.now.Sub(since), maxRefusedWait))
}
