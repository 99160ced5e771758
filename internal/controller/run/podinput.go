package run

import (
	"time"

	"github.com/deckhand-dev/deckhand/internal/runnerpod"
)

// backstop is how much later than limits.duration the cluster ends a pod if neither
// runner nor operator did: time to pull an image and to report.
const backstop = 10 * time.Minute

// waitAllowance is how much longer a pod may run because it may wait for users: without a
// volume, a paused Run keeps its pod.
func waitAllowance(s state) time.Duration {
	if s.durable() && !mayAsk(s.revision.Snapshot) {
		return 0
	}
	return time.Duration(s.limits().task.WaitSeconds) * time.Second
}

// podInputOf returns what the pod of an attempt is built from.
func podInputOf(s state, attempt int32) runnerpod.Input {
	in := runnerpod.Input{
		Run:             s.run,
		Revision:        s.revision,
		Attempt:         attempt,
		Limits:          s.limits().task,
		Durable:         s.durable(),
		VolumeClaim:     s.volume,
		ActiveDeadline:  remainingDuration(s) + waitAllowance(s) + backstop,
		Signals:         initialSignals(s),
		Image:           s.runner,
		Defaults:        s.podDefaults,
		NetworkPolicies: s.networkPolicies,
	}
	if !in.Durable {
		in.Limits = withGrants(in.Limits, s.granted) // a durable journal remembers
	}
	return in
}
