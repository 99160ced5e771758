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
var rules = []func(state, plan) (plan, bool){
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
func decide(s state) plan {
	p := plan{
		prune: surplusRuns(s),
		ready: metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady, Message: "Creates Runs at the times of " + timesOf(s.schedule)},
	}
	if s.calendar != nil {
		p.handled = s.base()
	}
	for _, rule := range rules {
		if next, applies := rule(s, p); applies {
			p = next
			break
		}
	}
	if s.failed != nil {
		p = p.withWait(apierr.Describe(s.failed), retryInterval)
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
func (s state) base() time.Time {
	had := s.schedule.Status
	switch {
	case had.ObservedGeneration == 0: // this is the first time
		return s.schedule.CreationTimestamp.Time
	case had.Internal.HandledTime == nil, had.NextScheduleTime == nil, !s.due(had.Internal.HandledTime.Time).Equal(had.NextScheduleTime.Time), had.Internal.HandledTime.Sub(s.now) > maxAhead:
		return s.now.Truncate(time.Second)
	}
	return had.Internal.HandledTime.Time
}

func tooLarge(s state, p plan) (plan, bool) {
	problem := snapshot.CheckKept(s.schedule)
	if problem == nil {
		return p, false
	}
	p.handled, p.prune = time.Time{}, nil // how many Runs are kept is not known
	p.ready.Status, p.ready.Reason, p.ready.Message = metav1.ConditionFalse, problem.Reason, problem.Message
	return p, true
}

func invalid(s state, p plan) (plan, bool) {
	if s.calendar != nil {
		if err := s.calendar.Check(s.now); err != nil {
			s.problem = err.Error()
		}
	}
	if s.problem == "" {
		return p, false
	}
	p.handled = time.Time{}
	p.ready.Status, p.ready.Reason, p.ready.Message = metav1.ConditionFalse, v1alpha1.ReasonInvalid, s.problem
	return p, true
}

func suspended(s state, p plan) (plan, bool) {
	if !s.schedule.Spec.Suspend {
		return p, false
	}
	p.handled = time.Time{}
	p.ready.Reason = v1alpha1.ReasonSuspended
	p.ready.Message = "spec.suspend is true: no Runs are created, also not later for the times that pass"
	return p, true
}

func idle(s state, p plan) (plan, bool) {
	return p, s.pending().IsZero()
}

// pending returns the due time, the last one if several are due, or zero.
func (s state) pending() time.Time { return s.calendar.Last(s.base(), s.past()) }

// maxCounted is how many missed times are counted one by one.
const maxCounted = 100

// countMissed counts the times before the due one as missed, except those for which a Run was created before a restart
// of the operator.
func countMissed(s state, p plan) plan {
	n := s.calendar.Count(p.handled, s.pending(), maxCounted+2) - 1
	for i := range s.runs {
		if t := timeOf(&s.runs[i]); t.After(p.handled) && t.Before(s.pending()) {
			n--
		}
	}
	if n <= 0 {
		return p
	}
	last := s.pending()
	for last.Equal(s.pending()) || s.of(last) != nil {
		last = s.calendar.Last(p.handled, last.Add(-time.Second))
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

func handled(s state, p plan) (plan, bool) {
	if s.of(s.pending()) == nil {
		return p, false
	}
	return countMissed(s, p).withRun(s.pending()), true
}

func nameTaken(s state, p plan) (plan, bool) {
	if !s.nameTaken {
		return p, false
	}
	why := fmt.Sprintf("the name %s is used by a Run that this Schedule did not create. Delete that Run, or rename one of them", nameOf(s.schedule.Name, s.pending()))
	return countMissed(s, p).withMissed(s.pending(), why), true
}

// notCreated leaves the time open for a retry. If the request was refused, an Event has the cause.
func notCreated(s state, p plan) (plan, bool) {
	if apierr.IsRefusal(s.notCreated) {
		text := apierr.Describe(s.notCreated)
		p = p.withNotice(notice{corev1.EventTypeWarning, eventRefused, "Create", text}).withWait(text, min(retryInterval, s.left()+time.Second))
	}
	return p, s.notCreated != nil
}

// left returns for how long the due Run may still be created.
func (s state) left() time.Duration {
	return s.deadline() - s.past().Sub(s.pending())
}

func late(s state, p plan) (plan, bool) {
	if s.left() >= 0 {
		return p, false
	}
	why := "it was %s late, and spec.startingDeadline is %s"
	if others := s.active(); len(others) > 0 && s.schedule.Spec.ConcurrencyPolicy == v1alpha1.ConcurrencyReplace {
		why = nameRuns(others) + " had not ended after %s, and spec.startingDeadline is %s"
	}
	return countMissed(s, p).withMissed(s.pending(), fmt.Sprintf(why, s.past().Sub(s.pending()).Truncate(time.Second), s.schedule.Spec.StartingDeadline)), true
}

func free(s state, p plan) (plan, bool) {
	if len(s.active()) > 0 && s.schedule.Spec.ConcurrencyPolicy != v1alpha1.ConcurrencyAllow {
		return p, false
	}
	p = countMissed(s, p).withCreate(s, s.pending())
	if s.created {
		p = p.withNotice(notice{corev1.EventTypeNormal, eventCreated, "Create", fmt.Sprintf("Run %s is for %s", p.create.Name, clockTime(p.due))})
	}
	return p, true
}

func forbidden(s state, p plan) (plan, bool) {
	if s.schedule.Spec.ConcurrencyPolicy == v1alpha1.ConcurrencyReplace {
		return p, false
	}
	return countMissed(s, p).withMissed(s.pending(), nameRuns(s.active())+" is still active, and spec.concurrencyPolicy is Forbid"), true
}

func replacing(s state, p plan) (plan, bool) {
	for _, run := range s.active() {
		if run.Spec.DesiredState != v1alpha1.DesiredStopped && run.DeletionTimestamp.IsZero() {
			p.stop = append(p.stop, run)
		}
	}
	p = countMissed(s, p)
	if before := s.calendar.Last(p.handled, s.pending().Add(-time.Second)); !before.IsZero() {
		p.handled = before // the time that is due is not handled yet
	}
	text := fmt.Sprintf("Waiting for %s to end, which the Run for %s replaces", nameRuns(s.active()), clockTime(s.pending()))
	return p.withWait(text, min(s.left()+time.Second, s.due(s.pending()).Sub(s.now))), true
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
func surplusRuns(s state) []*v1alpha1.Run {
	var out []*v1alpha1.Run
	keep := map[bool]int{true: limit(s.schedule.Spec.SuccessfulRunsHistoryLimit, 3), false: limit(s.schedule.Spec.FailedRunsHistoryLimit, 5)}
	for i := len(s.runs) - 1; i >= 0; i-- {
		run := &s.runs[i]
		if run.Status.CompletionTime == nil || !run.DeletionTimestamp.IsZero() {
			continue
		}
		well := succeeded(run)
		if keep[well]--; keep[well] < 0 && isRecorded(s.schedule, run) {
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
