package workflowrun

import (
	"fmt"
	"time"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/runstatus"
)

// rules are the whole policy of a workflow's Run, most pressing first. The first
// that applies decides; to learn what the controller does, read this list.
var rules = []func(world) (plan, bool){
	requestFailed, // a request failed: say so, and try again
	deleted,       // it is being deleted: owner references do the rest
	settled,       // a finished Run never moves again; what it leaves behind is tidied up
	restored,      // a backup brought it back without its status: not done twice
	mismatched,    // it acted on a decision that nobody made
	overdue,       // its deadline passed before it began
	canceled,      // a person asked it to stop before it began
	unguarded,     // the admission policies are missing: no child is safe
	held,          // it was paused before it began
	unreadable,    // its revision is of a format that this operator does not read
	unresolved,    // its Workflow is not there, or not ready: wait
	unfit,         // what it is given is not what its Workflow takes
	unfrozen,      // nothing in the way: begin, with this version
	behind,        // the cache does not show all children yet
	underway,      // the graph says what comes next
}

// decide is arithmetic: from what was seen to what to do. Whatever an active Run
// waits for, it looks up when its deadline passes.
func decide(w world) plan {
	for _, rule := range rules {
		p, applies := rule(w)
		if !applies {
			continue
		}
		if at := deadline(w); !at.IsZero() && active(w) && !p.Settles() && at.After(w.now) {
			p.wake = sooner(p.wake, max(at.Sub(w.now), time.Second))
		}
		return p
	}
	return plan{}
}

// active says whether a Run may still move.
func active(w world) bool {
	return w.run.Status.CompletionTime == nil && w.run.DeletionTimestamp.IsZero()
}

func deleted(w world) (plan, bool) {
	return plan{}, !w.run.DeletionTimestamp.IsZero()
}

func restored(w world) (plan, bool) {
	if w.begun() {
		return plan{}, false
	}
	o, is := runstatus.Restored(w.run)
	return plan{Outcome: o}, is
}

func mismatched(w world) (plan, bool) {
	if w.unproven == "" {
		return plan{}, false
	}
	return failure(v1alpha1.ReasonDecisionMismatch, fmt.Sprintf("The Run acted on Decision %s, which no longer exists or decides something else: it was deleted although an admission policy protects it. Read the audit log of the cluster, and create another Run", w.unproven)), true
}

// deadline is when limits.deadline has passed; zero: never.
func deadline(w world) time.Time {
	var whole *v1alpha1.WorkflowLimits
	if w.version != nil {
		whole = w.version.Spec.Limits
	}
	said := time.Duration(0)
	if whole != nil {
		said = span(whole.Deadline)
	}
	if own := w.run.Spec.Limits; own != nil {
		said = sooner(said, span(own.Deadline))
	}
	if said == 0 {
		return time.Time{}
	}
	return w.run.CreationTimestamp.Add(said)
}

func overdue(w world) (plan, bool) {
	at := deadline(w)
	if w.begun() || at.IsZero() || w.now.Before(at) {
		return plan{}, false
	}
	return failure(v1alpha1.ReasonDeadlineExceeded, toldDeadline(w)), true
}

func toldDeadline(w world) string {
	return fmt.Sprintf("The Run did not finish within limits.deadline (%s after its creation). Raise limits.deadline and create a new Run", deadline(w).Sub(w.run.CreationTimestamp.Time))
}

const (
	toldStopped = "Stopped by spec.desiredState"
	toldPaused  = "Paused by spec.desiredState. Set it to Running to resume"
)

func canceled(w world) (plan, bool) {
	if w.begun() || w.run.Spec.DesiredState != v1alpha1.DesiredStopped {
		return plan{}, false
	}
	return failure(v1alpha1.ReasonStopped, toldStopped), true
}

// guardInterval is how soon missing policies are looked for again.
const guardInterval = 15 * time.Second

func unguarded(w world) (plan, bool) {
	if w.unguarded == "" || w.begun() {
		return plan{}, false // children wait for them themselves
	}
	return waiting(v1alpha1.ReasonPending, "No child Run is created while the cluster does not have "+w.unguarded+". Install the chart of Deckhand again, or apply config/default", guardInterval), true
}

func held(w world) (plan, bool) {
	if !w.wantsPause() || w.begun() {
		return plan{}, false
	}
	return waiting(v1alpha1.ReasonPaused, toldPaused, 0), true
}

// defaultPending is the default of limits.pending.
const defaultPending = 10 * time.Minute

// pendingLimit is limits.pending of a Run that has not begun.
func pendingLimit(w world) time.Duration {
	if own := w.run.Spec.Limits; own != nil && span(own.Pending) > 0 {
		return min(defaultPending, span(own.Pending))
	}
	return defaultPending
}

// unreadable waits for an operator that can read the revision of the Run, or fails the
// Run if only an operator of the past could.
func unreadable(w world) (plan, bool) {
	if w.unsupported == nil {
		return plan{}, false
	}
	if w.run.Spec.DesiredState == v1alpha1.DesiredStopped {
		return failure(v1alpha1.ReasonStopped, toldStopped), true
	}
	message := runstatus.UnreadableRevision("Workflow", w.run.Spec.Workflow, w.unsupported)
	if !w.unsupported.IsNewer() {
		return failure(v1alpha1.ReasonRevisionUnsupported, message), true
	}
	return waiting(v1alpha1.ReasonRevisionUnsupported, message, 0), true
}

// unresolved waits for what a Run is to run, limits.pending at most.
func unresolved(w world) (plan, bool) {
	if w.version != nil {
		return plan{}, false
	}
	if w.begun() || pinned(w.run) != "" {
		return failure(v1alpha1.ReasonMisconfigured, w.obstacle), true
	}
	limit := pendingLimit(w)
	until := pendingSince(w).Add(limit)
	if !until.After(w.now) {
		return failure(v1alpha1.ReasonPendingTimeout, fmt.Sprintf("Timed out after %s (limits.pending) waiting for: %s. Fix the cause and create a new Run", limit, w.obstacle)), true
	}
	return waiting(v1alpha1.ReasonPending, runstatus.WithDeadline(w.obstacle, until, limit, "limits.pending"), until.Sub(w.now)), true
}

// pendingSince is since when the Run waits. What it waited while it was paused
// does not count.
func pendingSince(w world) time.Time {
	resumed := w.run.Status.Internal.ResumedAt
	switch {
	case runstatus.OutcomeOf(w.run.Status).Reason == v1alpha1.ReasonPaused:
		return w.now // it goes on with this step
	case resumed != nil && resumed.After(w.run.CreationTimestamp.Time):
		return resumed.Time
	}
	return w.run.CreationTimestamp.Time
}

// maxInput is the most bytes of a Run's input.
const maxInput = 16 << 10

// unfit settles a Run whose values its Workflow does not take.
func unfit(w world) (plan, bool) {
	if w.begun() {
		return plan{}, false
	}
	if size := len(given(w.run)); size > maxInput {
		return failure(v1alpha1.ReasonTaskTooLarge, fmt.Sprintf("spec.input has %d bytes of JSON; at most %d are allowed. Move long texts into files of the workspace", size, maxInput)), true
	}
	if _, err := w.program.Input(given(w.run)); err != nil {
		return failure(v1alpha1.ReasonMisconfigured, fmt.Sprintf("spec.input does not fit the input of Workflow %s: %v; create another Run", w.run.Spec.Workflow, err)), true
	}
	return plan{}, false
}

// given returns the input of a Run; nil: it has none.
func given(run *v1alpha1.Run) []byte {
	if run.Spec.Input == nil {
		return nil
	}
	return run.Spec.Input.Raw
}

func unfrozen(w world) (plan, bool) {
	if w.begun() {
		return plan{}, false
	}
	p := waiting(v1alpha1.ReasonRunning, "Beginning", 0)
	p.freeze = w.version
	return p, true
}

// lateness is how long the cache gets to show what the API server has.
const lateness = time.Second

func behind(w world) (plan, bool) {
	return plan{wake: lateness}, w.late
}

// span is a duration of the API; 0 where none is said, or what is said is none.
func span(d *v1alpha1.Duration) time.Duration {
	if d == nil {
		return 0
	}
	v, err := d.Value()
	if err != nil {
		return 0
	}
	return v
}
