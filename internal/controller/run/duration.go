package run

import (
	"fmt"
	"time"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
)

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

// remainingDuration is how much of limits.duration earlier attempts left.
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
