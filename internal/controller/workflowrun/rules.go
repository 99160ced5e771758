package workflowrun

import (
	"fmt"
	"time"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/run/children"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
)

// rules are all rules of a Run of a Workflow, most important first: the first that applies decides. Each line names the
// condition, and the reason of Succeeded.
var rules = []func(state) (plan, bool){
	requestFailed,       // a request of this Reconcile failed: the same reason, or Pending and in the end PendingTimeout
	beingDeleted,        // the Run is being deleted, and what it owns with it: no change
	finished,            // the Run has ended: no change; children are stopped, expired volumes and the Run itself are deleted
	restoredFromBackup,  // a backup tool created the Run without its status: Restored
	reused,              // the workflow of its parent is retried, and the work was done before: Reused, or NothingToContinue
	decisionMissing,     // the Run acted on a Decision that does not exist or says something else: DecisionMismatch
	expiredBeforeStart,  // limits.deadline has passed before the Run started: DeadlineExceeded
	stoppedBeforeStart,  // desiredState is Stopped before the Run started: Stopped
	policiesUnchecked,   // the operator has just started and knows of no admission policies yet: no change
	policiesMissing,     // admission policies are missing, so no child Run would be safe: Pending
	pausedBeforeStart,   // desiredState is Paused before the Run started: Paused
	revisionUnsupported, // the revision was stored by another version of the operator: RevisionUnsupported
	workflowNotReady,    // there is no revision to run: Pending, then PendingTimeout; or Misconfigured
	inputInvalid,        // the input does not fit the Workflow: Misconfigured, or TaskTooLarge
	sourceNotReady,      // the Run retries another: Queued, Pending, or why it cannot: Misconfigured, NothingToContinue
	notStarted,          // nothing prevents the start, with this revision: Running
	cacheBehind,         // the cache does not show all children yet: no change
	running,             // the graph decides: Running, what all children wait for, or how the Run ends
}

// decide returns the plan of the first rule that applies. An active Run is always reconciled when its deadline passes.
func decide(s state) plan {
	for _, rule := range rules {
		p, applies := rule(s)
		if !applies {
			continue
		}
		if at := deadline(s); active(s) && !p.Settles() && at.After(s.now) { // the zero time is not
			p.wake = earlier(p.wake, max(at.Sub(s.now), time.Second))
		}
		return p
	}
	return plan{}
}

// active reports whether a Run has neither finished nor is being deleted.
func active(s state) bool {
	return s.run.Status.CompletionTime == nil && s.run.DeletionTimestamp.IsZero()
}

func beingDeleted(s state) (plan, bool) {
	return plan{}, !s.run.DeletionTimestamp.IsZero()
}

func restoredFromBackup(s state) (plan, bool) {
	if s.hasStarted() {
		return plan{}, false
	}
	o, is := runstatus.Restored(s.run)
	return plan{Outcome: o}, is
}

// reused ends a child Run of a workflow that is retried, because its work was done before: it has that result.
func reused(s state) (plan, bool) {
	if children.ReuseOf(s.run) == "" {
		return plan{}, false
	}
	outcome, progress := children.Reuse(s.run, s.reusedRun)
	return plan{Outcome: outcome, reusedProgress: progress}, true
}

func decisionMissing(s state) (plan, bool) {
	if s.missingDecision == "" {
		return plan{}, false
	}
	return failure(v1alpha1.ReasonDecisionMismatch, fmt.Sprintf("The Run acted on Decision %s, which no longer exists or decides something else: it was deleted although an admission policy protects it. Read the audit log of the cluster, and create another Run", s.missingDecision)), true
}

// deadline returns when limits.deadline passes; zero: never.
func deadline(s state) time.Time {
	var whole *v1alpha1.WorkflowLimits
	if s.revision != nil {
		whole = s.revision.Spec.Limits
	}
	said := time.Duration(0)
	if whole != nil {
		said = durationOf(whole.Deadline)
	}
	if own := s.run.Spec.Limits; own != nil {
		said = earlier(said, durationOf(own.Deadline))
	}
	if said == 0 {
		return time.Time{}
	}
	return s.run.CreationTimestamp.Add(said)
}

func expiredBeforeStart(s state) (plan, bool) {
	at := deadline(s)
	if s.hasStarted() || at.IsZero() || s.now.Before(at) {
		return plan{}, false
	}
	return failure(v1alpha1.ReasonDeadlineExceeded, deadlineMessage(s)), true
}

func deadlineMessage(s state) string {
	return fmt.Sprintf("The Run did not finish within limits.deadline (%s after its creation). Raise limits.deadline and create a new Run", deadline(s).Sub(s.run.CreationTimestamp.Time))
}

const stoppedMessage = "Stopped by spec.desiredState"

func stoppedBeforeStart(s state) (plan, bool) {
	if s.hasStarted() || s.run.Spec.DesiredState != v1alpha1.DesiredStopped {
		return plan{}, false
	}
	return failure(v1alpha1.ReasonStopped, stoppedMessage), true
}

// guardInterval is how often missing policies are checked.
const guardInterval = 15 * time.Second

// policiesUnchecked waits for the first check, which a new operator does immediately.
func policiesUnchecked(s state) (plan, bool) {
	return plan{wake: time.Second}, s.policiesUnknown && !s.hasStarted()
}

func policiesMissing(s state) (plan, bool) {
	if s.missingPolicies == "" || s.hasStarted() {
		return plan{}, false // children wait for them themselves
	}
	return waiting(v1alpha1.ReasonPending, "No child Run is created while the cluster does not have "+s.missingPolicies+". Install the chart of Deckhand again, or apply config/default", guardInterval), true
}

func pausedBeforeStart(s state) (plan, bool) {
	if !s.wantsPause() || s.hasStarted() {
		return plan{}, false
	}
	return waiting(v1alpha1.ReasonPaused, children.PausedMessage(s.run), 0), true
}

// revisionUnsupported waits for an operator that can read the revision of the Run, or fails the Run if only an older
// operator could.
func revisionUnsupported(s state) (plan, bool) {
	if s.unsupported == nil {
		return plan{}, false
	}
	if s.run.Spec.DesiredState == v1alpha1.DesiredStopped {
		return failure(v1alpha1.ReasonStopped, stoppedMessage), true
	}
	message := runstatus.UnreadableRevision("Workflow", s.run.Spec.Workflow, s.unsupported)
	if !s.unsupported.IsNewer() {
		return failure(v1alpha1.ReasonRevisionUnsupported, message), true
	}
	return waiting(v1alpha1.ReasonRevisionUnsupported, message, 0), true
}

// workflowNotReady waits for the Workflow of a Run, limits.pending at most.
func workflowNotReady(s state) (plan, bool) {
	if s.revision != nil {
		return plan{}, false
	}
	if s.hasStarted() || children.FixedRevision(s.run) != "" {
		return failure(v1alpha1.ReasonMisconfigured, s.notReadyMessage), true
	}
	p := waiting(v1alpha1.ReasonPending, s.notReadyMessage, 0)
	limit := pendingLimit(s)
	if until := pendingSince(s).Add(limit); until.After(s.now) {
		return waitUntil(s, p, until), true
	}
	return failure(v1alpha1.ReasonPendingTimeout, fmt.Sprintf("Timed out after %s (limits.pending) waiting for: %s. Fix the cause and create a new Run", limit, s.notReadyMessage)), true
}

// inputInvalid ends a Run whose values or limits do not fit its Workflow.
func inputInvalid(s state) (plan, bool) {
	if s.hasStarted() {
		return plan{}, false
	}
	p := s.program.CheckRun(s.run.Spec)
	if p == nil && children.ParentOf(s.run) == nil { // the operator itself chose the limits of a child Run
		p = snapshot.CheckLimits(s.run.Spec.Limits, snapshot.MostOfWorkflow(s.revision.Spec.Limits), "Workflow "+s.run.Spec.Workflow)
	}
	if p == nil {
		p = s.revision.CheckCost(s.run.Spec.Limits)
	}
	switch {
	case p == nil:
		return plan{}, false
	case p.Reason == v1alpha1.ReasonMisconfigured:
		return failure(p.Reason, p.Message+"; create another Run"), true
	default:
		return failure(p.Reason, p.Message), true
	}
}

// inputOf returns the input of a Run, or nil.
func inputOf(run *v1alpha1.Run) []byte {
	if run.Spec.Input == nil {
		return nil
	}
	return run.Spec.Input.Raw
}

func notStarted(s state) (plan, bool) {
	if s.hasStarted() {
		return plan{}, false
	}
	p := waiting(v1alpha1.ReasonRunning, "Beginning", 0)
	p.storeRevision = s.revision
	return p, true
}

// cacheDelay is how long the controller waits for the cache.
const cacheDelay = time.Second

func cacheBehind(s state) (plan, bool) {
	return plan{wake: cacheDelay}, s.cacheBehind
}

// durationOf returns a duration of the API; 0 if it is not set or invalid.
func durationOf(d *v1alpha1.Duration) time.Duration {
	if d == nil {
		return 0
	}
	v, err := d.Value()
	if err != nil {
		return 0
	}
	return v
}
