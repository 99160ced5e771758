package run

import (
	"time"

	"github.com/deckhand-dev/deckhand/internal/runnerpod"
)

// backstop is how much later than limits.duration the cluster ends a pod by
// itself, should nobody else: time to pull an image and to report.
const backstop = 10 * time.Minute

// patience is how much longer a pod may live because it may wait for people:
// where the journal dies with it, a paused Run holds in its pod.
func patience(w world) time.Duration {
	if w.durable() && !mayAsk(w.version.Snapshot) {
		return 0
	}
	return time.Duration(w.limits().task.WaitSeconds) * time.Second
}

// podInputOf returns what the pod of an attempt is built from.
func podInputOf(w world, attempt int32) runnerpod.Input {
	in := runnerpod.Input{
		Run:             w.run,
		Revision:        w.version,
		Attempt:         attempt,
		Limits:          w.limits().task,
		Durable:         w.durable(),
		VolumeClaim:     w.claim,
		ActiveDeadline:  remaining(w) + patience(w) + backstop,
		Signals:         opening(w),
		Image:           w.runner,
		Defaults:        w.supply,
		NetworkPolicies: w.fenced,
	}
	if !in.Durable {
		in.Limits = raised(in.Limits, w.granted) // a durable journal remembers
	}
	return in
}
