package workflowrun

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	case s.isNeeded:
		p.wake = earlier(p.wake, neededWait)
	case s.run.Spec.TTLSecondsAfterFinished != nil || len(s.volumes) == 0:
		p.deleteRun = true
	case p.wake == 0:
		p.wake = time.Minute // they are about to go
	}
	return p
}

// deleteExpiredVolumes deletes volumes whose retention has passed, after the end of the last Run that continued one of the
// children on its files, when no child can create another pod and no pod uses them.
func deleteExpiredVolumes(s state, p plan) plan {
	working := slices.ContainsFunc(s.children, func(c *v1alpha1.Run) bool { return !runstatus.IsFinished(c) })
	for i := range s.volumes {
		claim := &s.volumes[i]
		use, last := s.volumeUses[claim.Name], s.run
		if use.Last != nil {
			last = use.Last
		}
		done, left := runnerpod.RetentionExpired(last, claim, s.now)
		switch {
		case use.Active != nil:
			p.wake = earlier(p.wake, neededWait)
		case !done:
			p.wake = earlier(p.wake, left)
		case s.isNeeded:
			p.wake = earlier(p.wake, neededWait)
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

// neededWait is how often a finished Run is reconciled that another Run continues, or one of its child Runs.
const neededWait = time.Minute

// parentInterval is how often the controller checks whether the parent has ended.
const parentInterval = time.Minute

// isParentActive reports whether the parent of a finished Run with a TTL is active: it may
// still read the result.
func (r *Reconciler) isParentActive(ctx context.Context, of *v1alpha1.Run) (bool, error) {
	owner := metav1.GetControllerOf(of)
	if of.Spec.TTLSecondsAfterFinished == nil || owner == nil || owner.Kind != "Run" {
		return false, nil
	}
	var above v1alpha1.Run
	err := r.client.Get(ctx, client.ObjectKey{Namespace: of.Namespace, Name: owner.Name}, &above)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("getting Run %s: %w", owner.Name, err)
	}
	return above.UID == owner.UID && above.Status.CompletionTime == nil, nil
}
