package run

import (
	"time"

	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// backstop is how much later than limits.duration the cluster ends a pod that neither runner nor operator ended. It
// includes time to pull an image and to report.
const backstop = 10 * time.Minute

// outageAllowance is how long a runner may wait for unavailable models in total. Only limits.deadline bounds the sum of
// several outages.
const outageAllowance = 7 * 24 * time.Hour

// waitAllowance returns how much longer than limits.duration a pod may run because it waits: for users, for child Runs,
// for a model, or while it is paused without a volume.
func waitAllowance(l task.Limits) time.Duration {
	wait := time.Duration(l.WaitSeconds) * time.Second
	if outage := snapshot.ModelOutage(l); outage > 0 {
		wait += max(outage, outageAllowance)
	}
	return wait
}

// podInputOf returns the input from which the pod of an attempt is built.
func podInputOf(s state, attempt int32) runnerpod.Input {
	in := runnerpod.Input{
		Run:             s.run,
		Revision:        s.revision,
		Attempt:         attempt,
		Limits:          s.limits().task,
		Durable:         s.durable(),
		VolumeClaim:     s.volume,
		Source:          sourceVolumeOf(s, attempt),
		ActiveDeadline:  remainingDuration(s) + waitAllowance(s.limits().task) + backstop,
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
