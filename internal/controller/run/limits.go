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

// limits are the effective limits of a Run, in units to compute with. Zero
// means no limit.
type limits struct {
	task     task.Limits
	pending  time.Duration
	deadline time.Duration
}

// duration returns the longest time that runners may be alive.
func (l limits) duration() time.Duration {
	return time.Duration(l.task.DurationSeconds) * time.Second
}

// limitsOf returns the limits of the Agent of a revision.
func limitsOf(v *snapshot.Revision) limits {
	out := limits{task: v.Snapshot.Agent.Limits}
	if d := v.Agent.Pending; d != nil {
		out.pending = d.Duration
	}
	if d := v.Agent.Deadline; d != nil {
		out.deadline = d.Duration
	}
	return out
}

// effective returns, limit by limit, the lower value of Agent and Run. Values that the schema should have refused are
// ignored.
func effective(agent limits, run *v1alpha1.Limits) limits {
	if run == nil {
		run = &v1alpha1.Limits{}
	}
	return limits{
		task:     snapshot.Lower(agent.task, *run),
		pending:  lowerOf(agent.pending, seconds(run.Pending), snapshot.DefaultPending),
		deadline: lowerOf(agent.deadline, seconds(run.Deadline), 0),
	}
}

// lowerOf returns the lower of the Agent's value, or its default, and the Run's value.
func lowerOf(agent, run, standard time.Duration) time.Duration {
	if agent == 0 {
		agent = standard
	}
	if run == 0 {
		return agent
	}
	if agent == 0 {
		return run
	}
	return min(agent, run)
}

func seconds(d *v1alpha1.Duration) time.Duration {
	if d == nil {
		return 0
	}
	v, err := d.Value()
	if err != nil {
		return 0
	}
	return v.Truncate(time.Second)
}

// overrunGrace is how much longer than limits.duration a runner may live. The runner enforces the limit itself and
// needs time to report.
const overrunGrace = time.Minute

// overrun ends a Run whose runner does not end itself at limits.duration. Waiting for users,
// child Runs and models does not count: limits.wait and limits.modelOutage bound that.
func overrun(s state) (plan, bool) {
	if startedAt(s).IsZero() || s.revision == nil || isWaiting(s) || s.now.Before(overrunAt(s)) {
		return plan{}, false
	}
	return failure(v1alpha1.ReasonDurationLimit, fmt.Sprintf("The Run exceeded limits.duration (%s), and the runner did not end it. Raise limits.duration and create a new Run", s.limits().duration())), true
}

// overrunAt returns when a runner that does not end itself is ended. Waits do not count: the last report has how much
// of the duration was used.
func overrunAt(s state) time.Time {
	at := startedAt(s).Add(remainingDuration(s) + overrunGrace)
	p := s.progress()
	if p == nil {
		return at
	}
	heard := time.UnixMilli(p.Sequence)
	if heard.After(s.now) {
		heard = s.now // its clock is ahead
	}
	left := max(s.limits().duration()-time.Duration(p.Usage.DurationSeconds)*time.Second, 0)
	if later := heard.Add(left + overrunGrace); later.After(at) {
		return later
	}
	return at
}

// startedAt returns when the runner of the current attempt started; zero: that is not known.
func startedAt(s state) time.Time {
	if container := runnerpod.RunnerStatus(s.pod()); container != nil && container.State.Running != nil {
		return container.State.Running.StartedAt.Time
	}
	if s.progress() != nil {
		return s.run.Status.Attempt.StartedAt.Time
	}
	return time.Time{}
}

// remainingDuration returns how much of limits.duration earlier attempts left.
func remainingDuration(s state) time.Duration {
	return max(s.limits().duration()-time.Duration(earlierSeconds(s))*time.Second, time.Second)
}

// earlierSeconds returns how many seconds runners were active before the current attempt. After the attempt has
// reported, only the task of its pod has this number.
func earlierSeconds(s state) int64 {
	if pod := s.pod(); pod != nil && pod.Annotations[v1alpha1.AnnotationTask] != "" {
		return runnerpod.TaskIn(pod).Meter.DurationSeconds
	}
	if p := s.run.Status.Progress; p != nil && p.Attempt < s.attempt() {
		return p.Usage.DurationSeconds
	}
	return 0
}

// overrunIn returns how long it takes until a runner that does not end itself is ended.
func overrunIn(s state) time.Duration {
	if s.revision == nil {
		return 0 // its limits are unknown; the pod has its own deadline
	}
	return max(overrunAt(s).Sub(s.now), time.Second)
}

// Promises about a missing object: the operator sees at once that it exists, or a runner or a kubelet looks again.
const (
	byItself = "; the Run continues when it exists"
	within   = "; the Run continues within two minutes after it exists"
)

// waitingUnbounded waits for something outside of the Run, without a bound.
func waitingUnbounded(s state, reason, message string) plan {
	if wantsPause(s) {
		return waiting(v1alpha1.ReasonPaused, sentence(children.PausedMessage(s.run), message), 0)
	}
	return waiting(reason, message, 0)
}

// waitingBounded waits for something outside of the Run, limits.pending at most, and without a
// bound while the Run is paused.
func waitingBounded(s state, reason, cause string) plan { return waitingFor(s, reason, cause, "") }

// waitingFor is waitingBounded with a promise behind the cause, which the message has only while the Run waits.
func waitingFor(s state, reason, cause, promise string) plan {
	cause = task.Cut(cause, runstatus.MaxCause-len(promise)) // a cut promise would be taken for a part of the cause
	if wantsPause(s) {
		return waitingUnbounded(s, reason, cause+promise)
	}
	left := pendingLeft(s)
	if left <= 0 {
		return failure(v1alpha1.ReasonPendingTimeout, fmt.Sprintf("Timed out after %s (limits.pending) waiting for: %s. Fix the cause and create a new Run", s.limits().pending, cause))
	}
	return waiting(reason, untilPending(s, cause+promise), left)
}

// pendingLeft returns how long limits.pending still lets the Run wait.
func pendingLeft(s state) time.Duration {
	return s.limits().pending - s.now.Sub(s.pendingSince())
}

// untilPending adds to a message until when limits.pending lets the Run wait.
func untilPending(s state, message string) string {
	if pendingLeft(s) <= 0 {
		return message
	}
	limit := s.limits().pending
	return runstatus.WithDeadline(message, s.pendingSince().Add(limit), limit, "limits.pending")
}

// recordedCause returns the cause in the message with which waitingFor lets the Run wait.
func recordedCause(s state) string {
	limit := s.limits().pending
	message := runstatus.TrimDeadline(messageOf(s.run), s.pendingSince().Add(limit), limit, "limits.pending")
	return strings.TrimSuffix(strings.TrimSuffix(message, within), byItself)
}
