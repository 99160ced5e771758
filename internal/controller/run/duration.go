package run

import (
	"fmt"
	"time"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/runnerpod"
)

// overrunGrace is how much longer than limits.duration a runner may live: it
// watches the limit itself and needs time to say so.
const overrunGrace = time.Minute

// Waiting for people, or for child Runs, takes as long as it takes: limits.wait is
// the runner's to watch, and bounds the pod.
func overrun(w world) (plan, bool) {
	if began(w).IsZero() || w.version == nil || awaitsOthers(w) || w.now.Before(givenUp(w)) {
		return plan{}, false
	}
	return failure(v1alpha1.ReasonDurationLimit, fmt.Sprintf("The Run exceeded limits.duration (%s), and the runner did not end it. Raise limits.duration and create a new Run", w.limits().duration())), true
}

// givenUp is when a runner that does not end by itself is given up. How long it
// waited for people only it can say: where it may, what it has used counts, from
// its last report on.
func givenUp(w world) time.Time {
	at := began(w).Add(remaining(w) + overrunGrace)
	p := w.progress()
	if p == nil || !mayWait(w) {
		return at
	}
	heard := time.UnixMilli(p.Sequence)
	if heard.After(w.now) {
		heard = w.now // its clock is ahead
	}
	left := max(w.limits().duration()-time.Duration(p.Usage.DurationSeconds)*time.Second, 0)
	if later := heard.Add(left + overrunGrace); later.After(at) {
		return later
	}
	return at
}

// mayWait says whether the runner may have waited for people or child Runs: it may
// ask them, or was paused.
func mayWait(w world) bool {
	return mayAsk(w.version.Snapshot) || runnerpod.SignalsIn(w.pod()).At > 0
}

// began is when the current attempt's runner began to live, as far as anybody
// has said; zero: nobody has.
func began(w world) time.Time {
	if s := runnerpod.RunnerStatus(w.pod()); s != nil && s.State.Running != nil {
		return s.State.Running.StartedAt.Time
	}
	if w.progress() != nil {
		return w.run.Status.Attempt.StartedAt.Time
	}
	return time.Time{}
}

// remaining is what the attempts before the current one left of limits.duration.
func remaining(w world) time.Duration {
	return max(w.limits().duration()-time.Duration(spent(w))*time.Second, time.Second)
}

// spent is how many seconds runners lived before the current attempt. Once it
// reports, only what it was told at its start remembers.
func spent(w world) int64 {
	if pod := w.pod(); pod != nil && pod.Annotations[v1alpha1.AnnotationTask] != "" {
		return runnerpod.TaskIn(pod).Meter.DurationSeconds
	}
	if p := w.run.Status.Progress; p != nil && p.Attempt < w.attempt() {
		return p.Usage.DurationSeconds
	}
	return 0
}

// overrunIn is when a runner that does not end is given up.
func overrunIn(w world) time.Duration {
	if w.version == nil {
		return 0 // nobody knows its limits any more; the pod has its own deadline
	}
	return max(givenUp(w).Sub(w.now), time.Second)
}
