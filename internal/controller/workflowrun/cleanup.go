package workflowrun

import (
	"slices"
	"time"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/children"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
)

// finished stops the children of a finished Run, deletes the volumes that they shared, and at last the Run itself.
func finished(s state) (plan, bool) {
	if s.run.Status.CompletionTime == nil {
		return plan{}, false
	}
	var p plan
	if kept := runstatus.OutcomeWithTTLNote(s.run); kept != runstatus.OutcomeOf(s.run.Status) {
		p.Outcome = kept
	}
	for _, c := range s.children {
		if change, needed := children.Stop(c); needed {
			p.setStates = append(p.setStates, change)
		}
	}
	p = deleteExpiredVolumes(s, p)
	return deleteExpired(s, p), true
}

// deleteExpired deletes a finished Run after its TTL. The default TTL does not shorten the retention
// of the volumes that its children shared.
func deleteExpired(s state, p plan) plan {
	ttl, goes := runstatus.TTL(s.run, s.defaultTTL)
	left := ttl - runstatus.SinceCompletion(s.run, s.now)
	switch {
	case !goes:
	case s.parentIsActive:
		p.wake = earlier(p.wake, parentInterval) // its TTL does not run
	case left > 0:
		p.wake = earlier(p.wake, left)
	case s.run.Spec.TTLSecondsAfterFinished != nil || len(s.volumes) == 0:
		p.deleteRun = true
	case p.wake == 0:
		p.wake = time.Minute // they are about to go
	}
	return p
}

// deleteExpiredVolumes deletes volumes whose retention has passed, when no child can create another pod and no pod uses
// them.
func deleteExpiredVolumes(s state, p plan) plan {
	working := slices.ContainsFunc(s.children, func(c *v1alpha1.Run) bool { return !runstatus.IsFinished(c) })
	for i := range s.volumes {
		claim := &s.volumes[i]
		done, left := runnerpod.RetentionExpired(s.run, claim, s.now)
		switch {
		case !done:
			p.wake = earlier(p.wake, left)
		case s.volumesInUse[claim.Name] || working:
			p.wake = earlier(p.wake, time.Second)
		case p.deleteVolume == nil:
			p.deleteVolume = claim
		default:
			p.wake = earlier(p.wake, time.Second) // one after the other
		}
	}
	return p
}
