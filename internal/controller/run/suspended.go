package run

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/children"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/runner/task"
)

const pausingMessage = "Waiting for the runner to reach a safe point to pause"

func wantsPause(s state) bool { return s.run.Spec.DesiredState == v1alpha1.DesiredPaused }

// durable reports whether the journal of a Run outlives its pods. After the first attempt the status shows that, even
// if the revision was deleted.
func (s state) durable() bool {
	if a := s.run.Status.Attempt; a != nil {
		return a.VolumeClaim != ""
	}
	return s.revision != nil && (s.revision.Agent.Workspace.Durable || s.sharesVolume() || sharesSource(s.run))
}

// suspendedFor returns why the runner of the current attempt left on purpose, as it reported: Waiting or Paused; empty:
// it did not leave.
func (s state) suspendedFor() task.Reason {
	p := s.progress()
	if p == nil || p.Result == nil || p.Result.Committed || !s.durable() {
		return ""
	}
	switch r := task.Reason(p.Result.Reason); r {
	case task.ReasonWaiting, task.ReasonPaused:
		return r
	default:
		return ""
	}
}

// pausedBeforeStart keeps a Run that was paused before its first attempt from starting.
func pausedBeforeStart(s state) (plan, bool) {
	if !wantsPause(s) || s.attempt() > 0 {
		return plan{}, false
	}
	return waiting(v1alpha1.ReasonPaused, children.PausedMessage(s.run), 0), true
}

// suspended applies to a Run whose runner ended on purpose, to wait. The Run has no pod and counts no attempt until
// there is a reason to resume.
func suspended(s state) (plan, bool) {
	left := s.suspendedFor()
	if left == "" {
		return plan{}, false
	}
	reason, message := v1alpha1.ReasonPaused, children.PausedMessage(s.run)
	if left == task.ReasonWaiting && !wantsPause(s) {
		reason, message = waitsFor(s)
	}
	if pod := s.pod(); runnerpod.IsAlive(pod) {
		p := waiting(reason, message, leaveGrace)
		if !s.now.Before(reportedAt(s).Add(leaveGrace)) {
			p.remove = []corev1.Pod{*pod} // it said that it leaves, and does not
		}
		return p, true
	}
	if runnerpod.IsStopping(s.pod()) {
		return waiting(reason, message, leaveGrace), true // its sandbox may still have the files
	}
	if wantsPause(s) {
		return waiting(reason, message, 0), true
	}
	if wait, waits := expiresIn(s); left == task.ReasonWaiting && waits && !hasWakeup(s) {
		if p, asks := delegating(s); asks {
			return p, true
		}
		return waiting(reason, message, wait), true
	}
	return resume(s), true
}

// resume starts the next attempt of a suspended Run.
func resume(s state) plan {
	p := waiting(v1alpha1.ReasonStarting, fmt.Sprintf("Starting attempt %d: the Run resumes", s.attempt()+1), 0)
	p.nextAttempt = nextAttempt(s, budgetNone)
	p.nextAttempt.pendingSince = metav1.NewTime(s.now)
	return p
}

// hasWakeup reports whether a child Run ended, or there is a Decision for which the runner would resume. A message
// counts only for a Run that asks a question, and only once.
func hasWakeup(s state) bool {
	if len(pendingChildResults(s, s.progress(), nil)) > 0 {
		return true
	}
	asks := slices.ContainsFunc(s.progress().Pending, func(p v1alpha1.PendingRequest) bool { return p.Kind == task.PendingQuestion })
	said := pendingDecisions(s, task.Signals{})
	return slices.ContainsFunc(s.decisions, func(d v1alpha1.Decision) bool {
		if !slices.ContainsFunc(said, func(sent task.Decision) bool { return sent.Name == d.Name }) {
			return false
		}
		return d.Spec.Type != v1alpha1.DecisionMessage || asks && !d.CreationTimestamp.Before(&s.run.Status.Attempt.StartedAt)
	})
}

// expiresIn returns how long the first open request still waits, or how long it takes until the next try of a model;
// false: neither applies. Requests for child Runs have no bound.
func expiresIn(s state) (first time.Duration, waits bool) {
	if next := nextTry(s); next != nil {
		if first, waits = next.Sub(s.now), true; first <= 0 {
			return 0, false
		}
	}
	for _, p := range s.progress().Pending {
		if p.ExpiresAt == nil {
			waits = waits || p.Kind == task.PendingDelegation
			continue
		}
		left := p.ExpiresAt.Sub(s.now)
		if left <= 0 {
			return 0, false
		}
		first, waits = earlier(first, left), true
	}
	return first, waits
}

// paused signals the runner to pause at a safe point, or to continue. A runner that has not started yet reads the
// signal when it starts.
func paused(s state) (plan, bool) {
	pod := s.pod()
	if !runnerpod.IsAlive(pod) {
		return plan{}, false
	}
	told := runnerpod.SignalsIn(pod)
	if told.Pause == wantsPause(s) && pauseRetryIn(s, told) != signalRetryInterval {
		return plan{}, false
	}
	told.Pause, told.At = wantsPause(s), s.now.Unix()
	return plan{signal: pod, signals: told, wake: signalCheckInterval}, true
}

// pauseRetryIn returns in how long the signal to pause or to continue is sent again: 0 if the runner has followed it,
// signalRetryInterval if it is due now. A kubelet may have missed the change of the annotation.
func pauseRetryIn(s state, told task.Signals) time.Duration {
	p := s.progress()
	if p == nil && !runnerRuns(s.pod()) {
		return 0
	}
	holds := p != nil && p.State == v1alpha1.ReasonPaused
	if told.At == 0 || holds == told.Pause {
		return 0
	}
	if left := signalRetryInterval - s.now.Sub(time.Unix(told.At, 0)); left > 0 {
		return min(left, signalRetryInterval-1)
	}
	return signalRetryInterval
}

// initialSignals returns the signals that a new pod gets; nil: none.
func initialSignals(s state) *task.Signals {
	said := task.Signals{Decisions: pendingDecisions(s, task.Signals{})}
	if s.durable() { // else it knows of nothing that was asked for
		said.Children = pendingChildResults(s, s.run.Status.Progress, nil)
	}
	if len(said.Decisions)+len(said.Children) == 0 {
		return nil
	}
	said.SentAt = s.now.Unix()
	return &said
}
