package run

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/runnerpod"
	"github.com/deckhand-dev/deckhand/runner/task"
)

const (
	toldPaused  = "Paused by spec.desiredState. Set it to Running to resume"
	toldPausing = "Waiting for the runner to reach a safe point to pause"
)

func wantsPause(w world) bool { return w.run.Spec.DesiredState == v1alpha1.DesiredPaused }

// durable reports whether the journal of a Run outlives its pods. After the first
// attempt its status says so, even if the version that it started with is gone.
func (w world) durable() bool {
	if a := w.run.Status.Attempt; a != nil {
		return a.VolumeClaim != ""
	}
	return w.version != nil && (w.version.Agent.Workspace.Durable || w.shares())
}

// left is why the runner of the current attempt left on purpose, as it reported
// itself: Waiting or Paused; empty: it did not.
func (w world) left() task.Reason {
	p := w.progress()
	if p == nil || p.Result == nil || p.Result.Committed || !w.durable() {
		return ""
	}
	switch r := task.Reason(p.Result.Reason); r {
	case task.ReasonWaiting, task.ReasonPaused:
		return r
	default:
		return ""
	}
}

// held keeps a Run that was paused before it began from beginning.
func held(w world) (plan, bool) {
	if !wantsPause(w) || w.attempt() > 0 {
		return plan{}, false
	}
	return waiting(v1alpha1.ReasonPaused, toldPaused, 0), true
}

// released is a Run whose runner left on purpose. It needs no pod, and nothing is
// charged for one that goes, until there is something to go on with.
func released(w world) (plan, bool) {
	left := w.left()
	if left == "" {
		return plan{}, false
	}
	reason, message := v1alpha1.ReasonPaused, toldPaused
	if left == task.ReasonWaiting && !wantsPause(w) {
		reason, message = waitsFor(w)
	}
	if pod := w.pod(); runnerpod.IsAlive(pod) {
		p := waiting(reason, message, leaveGrace)
		if !w.now.Before(reportedAt(w).Add(leaveGrace)) {
			p.remove = []corev1.Pod{*pod} // it said that it leaves, and does not
		}
		return p, true
	}
	if runnerpod.IsStopping(w.pod()) {
		return waiting(reason, message, leaveGrace), true // its sandbox may still have the files
	}
	if wantsPause(w) {
		return waiting(reason, message, 0), true
	}
	if wait, waits := expiresIn(w); left == task.ReasonWaiting && waits && !roused(w) {
		if p, asks := delegating(w); asks {
			return p, true
		}
		return waiting(reason, message, wait), true
	}
	return goingOn(w), true
}

// goingOn takes the next attempt of a Run whose runner left on purpose.
func goingOn(w world) plan {
	p := waiting(v1alpha1.ReasonStarting, fmt.Sprintf("Starting attempt %d: the Run resumes", w.attempt()+1), 0)
	p.claim = nextAttempt(w, chargeNone)
	p.claim.pendingSince = metav1.NewTime(w.now)
	return p
}

// roused says whether a child Run ended, or somebody decided something that a
// runner which left to wait would go on with. A message is that only to a Run that asks a question, and
// once: an attempt that began after it was said has heard it.
func roused(w world) bool {
	if len(toTell(w, w.progress(), nil)) > 0 {
		return true
	}
	asks := slices.ContainsFunc(w.progress().Pending, func(p v1alpha1.PendingRequest) bool { return p.Kind == task.PendingQuestion })
	said := toSay(w, task.Signals{})
	return slices.ContainsFunc(w.decisions, func(d v1alpha1.Decision) bool {
		if !slices.ContainsFunc(said, func(s task.Decision) bool { return s.Name == d.Name }) {
			return false
		}
		return d.Spec.Type != v1alpha1.DecisionMessage || asks && !d.CreationTimestamp.Before(&w.run.Status.Attempt.StartedAt)
	})
}

// expiresIn is how long the first of the open requests still waits; false: it does
// not any more. One for a child Run waits for as long as that takes.
func expiresIn(w world) (first time.Duration, waits bool) {
	for _, p := range w.progress().Pending {
		if p.ExpiresAt == nil {
			waits = waits || p.Kind == task.PendingDelegation
			continue
		}
		left := p.ExpiresAt.Sub(w.now)
		if left <= 0 {
			return 0, false
		}
		first, waits = sooner(first, left), true
	}
	return first, waits
}

// paused has the runner hold at a safe point, or go on.
func paused(w world) (plan, bool) {
	pod := w.pod()
	if w.progress() == nil || !runnerpod.IsAlive(pod) {
		return plan{}, false
	}
	told := runnerpod.SignalsIn(pod)
	if told.Pause == wantsPause(w) && brakingIn(w, told) != resay {
		return plan{}, false
	}
	told.Pause, told.At = wantsPause(w), w.now.Unix()
	return plan{signal: pod, say: told, wake: retell}, true
}

// brakingIn is when the runner is to be told again to hold, or to go on, which it
// does not yet: 0 where it does, resay when it is time. A kubelet may have missed
// that the annotation changed.
func brakingIn(w world, told task.Signals) time.Duration {
	holds := w.progress().State == v1alpha1.ReasonPaused
	if told.At == 0 || holds == told.Pause {
		return 0
	}
	if left := resay - w.now.Sub(time.Unix(told.At, 0)); left > 0 {
		return min(left, resay-1)
	}
	return resay
}

// opening is what the runner of a new attempt is told at once; nil: nothing.
func opening(w world) *task.Signals {
	said := task.Signals{Decisions: toSay(w, task.Signals{})}
	if w.durable() { // else it knows of nothing that was asked for
		said.Children = toTell(w, w.run.Status.Progress, nil)
	}
	if len(said.Decisions)+len(said.Children) == 0 {
		return nil
	}
	said.Said = w.now.Unix()
	return &said
}

// mayAsk says whether any agent of a snapshot may wait for people, or for child
// Runs.
func mayAsk(s task.Snapshot) bool {
	return delegates(s) || slices.ContainsFunc(append([]task.Agent{s.Agent}, s.Agents...), func(a task.Agent) bool {
		return a.Limits.Ask || slices.ContainsFunc(a.Tools, asksPeople) ||
			slices.ContainsFunc(a.Policy, func(r task.Rule) bool { return r.Answer == string(v1alpha1.PolicyAsk) })
	})
}

func asksPeople(t task.Tool) bool {
	return t.Builtin == string(v1alpha1.BuiltinAsk) || t.Approval != nil
}
