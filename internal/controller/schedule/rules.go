package schedule

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/apierr"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
)

// rules are all decisions about a Schedule, in order. The first that applies decides.
var rules = []func(observed, plan) (plan, bool){
	tooLarge,   // the operator does not keep its spec: TooLarge
	invalid,    // spec.schedule or spec.timeZone cannot be read, or no time ever comes: Invalid
	suspended,  // spec.suspend is true: Suspended
	idle,       // no time is due
	handled,    // the Run that is due exists: the operator was restarted before it wrote the status
	nameTaken,  // another Run has the name of the one that is due: missed
	notCreated, // the API server refused the Run that is due, or did not answer: wait
	late,       // more than spec.startingDeadline has passed: missed
	free,       // no Run is active, or spec.concurrencyPolicy is Allow: create the Run
	forbidden,  // another is active, and spec.concurrencyPolicy is Forbid: missed
	replacing,  // others are active, and spec.concurrencyPolicy is Replace: stop them, and wait
}

// retryInterval is how long to wait until a failed request is repeated.
const retryInterval = 30 * time.Second

// decide returns the plan for the observed state and the results of the last plan.
func decide(o observed) plan {
	p := plan{
		prune: surplusRuns(o),
		ready: metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady, Message: "Creates Runs at the times of " + timesOf(o.schedule)},
	}
	if o.calendar != nil {
		p.handled = o.base()
	}
	for _, rule := range rules {
		if next, applies := rule(o, p); applies {
			p = next
			break
		}
	}
	if o.failed != nil {
		p = p.withWait(apierr.Describe(o.failed), retryInterval)
	}
	return p
}

func timesOf(s *v1alpha1.Schedule) string {
	if s.Spec.TimeZone == "" {
		return s.Spec.Schedule + ", UTC"
	}
	return s.Spec.Schedule + ", " + s.Spec.TimeZone
}

// maxAhead is how far the last handled time may be ahead of the clock. If a clock is set back by less, no Run is
// created twice. If it is set back by more, the clock had been wrong, and the Schedule does not wait until it reaches
// the handled time again.
const maxAhead = 24 * time.Hour

// base returns the last handled time. It returns the present time if the Schedule was suspended or its times have
// changed, which status.nextScheduleTime shows: Runs for earlier times are not created later.
func (o observed) base() time.Time {
	s := o.schedule.Status
	switch {
	case s.ObservedGeneration == 0: // this is the first time
		return o.schedule.CreationTimestamp.Time
	case s.Internal.HandledTime == nil, s.NextScheduleTime == nil, !o.due(s.Internal.HandledTime.Time).Equal(s.NextScheduleTime.Time), s.Internal.HandledTime.Sub(o.now) > maxAhead:
		return o.now.Truncate(time.Second)
	}
	return s.Internal.HandledTime.Time
}

func tooLarge(o observed, p plan) (plan, bool) {
	problem := snapshot.CheckKept(o.schedule)
	if problem == nil {
		return p, false
	}
	p.handled, p.prune = time.Time{}, nil // how many Runs are kept is not known
	p.ready.Status, p.ready.Reason, p.ready.Message = metav1.ConditionFalse, problem.Reason, problem.Message
	return p, true
}

func invalid(o observed, p plan) (plan, bool) {
	if o.calendar != nil {
		if err := o.calendar.Check(o.now); err != nil {
			o.problem = err.Error()
		}
	}
	if o.problem == "" {
		return p, false
	}
	p.handled = time.Time{}
	p.ready.Status, p.ready.Reason, p.ready.Message = metav1.ConditionFalse, v1alpha1.ReasonInvalid, o.problem
	return p, true
}

func suspended(o observed, p plan) (plan, bool) {
	if !o.schedule.Spec.Suspend {
		return p, false
	}
	p.handled = time.Time{}
	p.ready.Reason = v1alpha1.ReasonSuspended
	p.ready.Message = "spec.suspend is true: no Runs are created, also not later for the times that pass"
	return p, true
}

func idle(o observed, p plan) (plan, bool) {
	return p, o.pending().IsZero()
}

// pending returns the due time, the last one if several are due, or zero.
func (o observed) pending() time.Time { return o.calendar.Last(o.base(), o.past()) }

// maxCounted is how many missed times are counted one by one.
const maxCounted = 100

// countMissed counts the times before the due one as missed, except those for which a Run was created before a restart
// of the operator.
func countMissed(o observed, p plan) plan {
	n := o.calendar.Count(p.handled, o.pending(), maxCounted+2) - 1
	for i := range o.runs {
		if t := timeOf(&o.runs[i]); t.After(p.handled) && t.Before(o.pending()) {
			n--
		}
	}
	if n <= 0 {
		return p
	}
	last := o.pending()
	for last.Equal(o.pending()) || o.of(last) != nil {
		last = o.calendar.Last(p.handled, last.Add(-time.Second))
	}
	p.missed, p.missedLast = int64(min(n, maxCounted)), last
	return p.withNotice(missed("No Run for %s: of several times that passed the last one counts", many(n, last)))
}

// many describes n times by the last of them.
func many(n int, last time.Time) string {
	switch {
	case n == 1:
		return clockTime(last)
	case n > maxCounted:
		return fmt.Sprintf("more than %d times, the last of them %s", maxCounted, clockTime(last))
	default:
		return fmt.Sprintf("%d times, the last of them %s", n, clockTime(last))
	}
}

func handled(o observed, p plan) (plan, bool) {
	if o.of(o.pending()) == nil {
		return p, false
	}
	return countMissed(o, p).withRun(o.pending()), true
}

func nameTaken(o observed, p plan) (plan, bool) {
	if !o.nameTaken {
		return p, false
	}
	why := fmt.Sprintf("the name %s is used by a Run that this Schedule did not create. Delete that Run, or rename one of them", nameOf(o.schedule.Name, o.pending()))
	return countMissed(o, p).withMissed(o.pending(), why), true
}

// notCreated leaves the time open for a retry. If the request was refused, an Event has the cause.
func notCreated(o observed, p plan) (plan, bool) {
	if apierr.IsRefusal(o.notCreated) {
		text := apierr.Describe(o.notCreated)
		p = p.withNotice(notice{corev1.EventTypeWarning, eventRefused, "Create", text}).withWait(text, min(retryInterval, o.left()+time.Second))
	}
	return p, o.notCreated != nil
}

// left returns for how long the due Run may still be created.
func (o observed) left() time.Duration {
	return o.deadline() - o.past().Sub(o.pending())
}

func late(o observed, p plan) (plan, bool) {
	if o.left() >= 0 {
		return p, false
	}
	why := "it was %s late, and spec.startingDeadline is %s"
	if others := o.active(); len(others) > 0 && o.schedule.Spec.ConcurrencyPolicy == v1alpha1.ConcurrencyReplace {
		why = nameRuns(others) + " had not ended after %s, and spec.startingDeadline is %s"
	}
	return countMissed(o, p).withMissed(o.pending(), fmt.Sprintf(why, o.past().Sub(o.pending()).Truncate(time.Second), o.schedule.Spec.StartingDeadline)), true
}

func free(o observed, p plan) (plan, bool) {
	if len(o.active()) > 0 && o.schedule.Spec.ConcurrencyPolicy != v1alpha1.ConcurrencyAllow {
		return p, false
	}
	p = countMissed(o, p).withCreate(o, o.pending())
	if o.created {
		p = p.withNotice(notice{corev1.EventTypeNormal, eventCreated, "Create", fmt.Sprintf("Run %s is for %s", p.create.Name, clockTime(p.due))})
	}
	return p, true
}

func forbidden(o observed, p plan) (plan, bool) {
	if o.schedule.Spec.ConcurrencyPolicy == v1alpha1.ConcurrencyReplace {
		return p, false
	}
	return countMissed(o, p).withMissed(o.pending(), nameRuns(o.active())+" is still active, and spec.concurrencyPolicy is Forbid"), true
}

func replacing(o observed, p plan) (plan, bool) {
	for _, run := range o.active() {
		if run.Spec.DesiredState != v1alpha1.DesiredStopped && run.DeletionTimestamp.IsZero() {
			p.stop = append(p.stop, run)
		}
	}
	p = countMissed(o, p)
	if before := o.calendar.Last(p.handled, o.pending().Add(-time.Second)); !before.IsZero() {
		p.handled = before // the time that is due is not handled yet
	}
	text := fmt.Sprintf("Waiting for %s to end, which the Run for %s replaces", nameRuns(o.active()), clockTime(o.pending()))
	return p.withWait(text, min(o.left()+time.Second, o.due(o.pending()).Sub(o.now))), true
}

// maxNamed is how many Runs a message names.
const maxNamed = 3

// nameRuns lists Runs for a message, with the reason of each Run that is not running.
func nameRuns(runs []*v1alpha1.Run) string {
	var names []string
	for _, run := range runs[:min(len(runs), maxNamed)] {
		name := run.Name
		if why := runstatus.OutcomeOf(run.Status).Reason; why != "" && why != v1alpha1.ReasonRunning {
			name += " (" + why + ")"
		}
		names = append(names, name)
	}
	text := strings.Join(names, ", ")
	if more := len(runs) - maxNamed; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// surplusRuns returns the oldest finished Runs beyond the history limits. A Run whose time is not in the status yet is
// kept, because it proves that it was created.
func surplusRuns(o observed) []*v1alpha1.Run {
	var out []*v1alpha1.Run
	keep := map[bool]int{true: limit(o.schedule.Spec.SuccessfulRunsHistoryLimit, 3), false: limit(o.schedule.Spec.FailedRunsHistoryLimit, 5)}
	for i := len(o.runs) - 1; i >= 0; i-- {
		run := &o.runs[i]
		if run.Status.CompletionTime == nil || !run.DeletionTimestamp.IsZero() {
			continue
		}
		well := succeeded(run)
		if keep[well]--; keep[well] < 0 && isRecorded(o.schedule, run) {
			out = append(out, run)
		}
	}
	return out
}

func limit(n *int32, otherwise int) int {
	if n == nil {
		return otherwise
	}
	return int(*n)
}

func succeeded(run *v1alpha1.Run) bool {
	return meta.IsStatusConditionTrue(run.Status.Conditions, v1alpha1.ConditionSucceeded)
}

// isRecorded reports whether the status has the time of a Run.
func isRecorded(s *v1alpha1.Schedule, run *v1alpha1.Run) bool {
	return s.Status.Internal.HandledTime != nil && !timeOf(run).After(s.Status.Internal.HandledTime.Time)
}
