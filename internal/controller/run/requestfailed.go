package run

import (
	"cmp"
	"time"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// requestFailed reports a failed request or observation. Nothing of its plan is recorded, unless the plan ends the Run:
// the next Reconcile decides again.
func requestFailed(s state) (plan, bool) {
	if s.facts.failure == nil {
		return plan{}, false
	}
	p, err := s.facts.failure.plan, s.facts.failure.err
	text := task.Cut(apierr.Describe(err), runstatus.MaxCause)
	var next plan
	switch {
	case runstatus.IsFinished(s.run):
		next = unchanged(s.run, plan{problem: text})
	case p.settles():
		next = plan{reason: p.reason, message: p.message, outcome: p.outcome, termination: p.termination, problem: text}
	case startsAttempt(s):
		next = cannotStart(s, p, err)
		if !next.settles() {
			next.problem = text
		}
	default:
		next = plan{reason: reasonWhile(s, p), message: text, problem: text}
	}
	next.wake = earlier(earlier(next.wake, p.wake), retryIn(s))
	return next, true
}

// outdated waits until the cache has the change that was made since the Run was read.
func outdated(s state) (plan, bool) { return plan{wake: signalCheckInterval}, s.facts.outdated }

// startsAttempt reports whether a Run waits for a pod of its current attempt, or for
// its first attempt.
func startsAttempt(s state) bool {
	return s.run.Status.Attempt == nil || s.run.Status.Attempt.PodUID == ""
}

// cannotStart waits until an attempt can start, limits.pending at most. A temporary failure does not end a Run the
// first time that it occurs, because the Run may have waited for something else until then.
func cannotStart(s state, p plan, err error) plan {
	cause, promise := apierr.Cause(err)
	cause = task.Cut(cause, runstatus.MaxCause)
	switch reason := reasonWhile(s, p); {
	case apierr.IsRefusal(err):
		return waitingFor(s, v1alpha1.ReasonPending, cause, promise)
	case runstatus.HasProblem(s.run.Status):
		return waitingFor(s, reason, cause, promise)
	default:
		return waiting(reason, untilPending(s, cause+promise), 0)
	}
}

// reasonWhile returns the reason of a Run while a request fails. It is not SecretMissing: the message of a Run with this
// reason is repeated until its runner starts, and the message about a request must not be.
func reasonWhile(s state, p plan) string {
	switch reason := cmp.Or(p.reason, reasonOf(s.run)); reason {
	case v1alpha1.ReasonSecretMissing:
		return v1alpha1.ReasonStarting
	default:
		return reason
	}
}

// retryIn returns how soon a refused request is sent again: less and less often.
func retryIn(s state) time.Duration {
	since := s.run.CreationTimestamp.Time
	if a := s.run.Status.Attempt; a != nil {
		since = a.StartedAt.Time
	}
	if runstatus.IsFinished(s.run) {
		since = s.run.Status.CompletionTime.Time
	}
	return max(minRefusedWait, min(s.now.Sub(since), maxRefusedWait))
}
