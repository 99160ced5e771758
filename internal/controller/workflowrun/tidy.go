package workflowrun

import (
	"slices"
	"time"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/children"
	"github.com/deckhand-dev/deckhand/internal/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/runstatus"
)

// settled tidies up after a finished Run: it stops children that still work, gives
// back the claims that they shared, and in the end the Run itself.
func settled(w world) (plan, bool) {
	if w.run.Status.CompletionTime == nil {
		return plan{}, false
	}
	var p plan
	if kept := runstatus.OutcomeWithTTLNote(w.run); kept != runstatus.OutcomeOf(w.run.Status) {
		p.Outcome = kept
	}
	for _, c := range w.children {
		if change, needed := children.Stop(c); needed {
			p.setStates = append(p.setStates, change)
		}
	}
	p = freed(w, p)
	left, goes := runstatus.TTLRemaining(w.run, w.now)
	switch {
	case !goes:
	case w.above:
		p.wake = sooner(p.wake, aboveInterval) // its TTL does not run
	case left > 0:
		p.wake = sooner(p.wake, left)
	default:
		p.forget = true
	}
	return p, true
}

// freed gives back one claim that has stayed as long as it was to, once no child
// may make another pod and none has it.
func freed(w world, p plan) plan {
	working := slices.ContainsFunc(w.children, func(c *v1alpha1.Run) bool { return !runstatus.IsFinished(c) })
	for i := range w.claims {
		claim := &w.claims[i]
		done, left := runnerpod.RetentionExpired(w.run, claim, w.now)
		switch {
		case !done:
			p.wake = sooner(p.wake, left)
		case w.busy[claim.Name] || working:
			p.wake = sooner(p.wake, time.Second)
		case p.free == nil:
			p.free = claim
		default:
			p.wake = sooner(p.wake, time.Second) // one after the other
		}
	}
	return p
}
