package schedule

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/runstatus"
)

// rules are the whole policy of a Schedule, most pressing first. The first that
// applies decides.
var rules = []func(world, plan) (plan, bool){
	invalid,   // its times cannot be read, or never come
	suspended, // nobody wants Runs of it now
	idle,      // no time has come
	handled,   // the Run is there: made before, and not yet reported
	late,      // it is too late for the time that came
	free,      // nothing is in the way
	forbidden, // another is active, so this time is left out
	replacing, // others are active, and go first
}

// decide is arithmetic: from what was seen to what to do.
func decide(w world) plan {
	if !w.schedule.DeletionTimestamp.IsZero() {
		return plan{} // owner references do the rest
	}
	p := plan{
		prune: surplus(w),
		ready: metav1.Condition{Type: v1alpha1.ConditionReady, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonReady, Message: "Creates Runs at the times of " + timesOf(w.schedule)},
	}
	if w.calendar != nil {
		p.handled = w.base()
	}
	for _, rule := range rules {
		if next, applies := rule(w, p); applies {
			return next
		}
	}
	return p
}

func timesOf(s *v1alpha1.Schedule) string {
	if s.Spec.TimeZone == "" {
		return s.Spec.Schedule + ", UTC"
	}
	return s.Spec.Schedule + ", " + s.Spec.TimeZone
}

// maxAhead is by how much times that were seen to may be ahead of the clock: one
// that was put back a little makes nothing twice, and one that had been off by
// more is not waited for.
const maxAhead = 24 * time.Hour

// base is until when all times were seen to. It is now where nobody watched: a
// Schedule that was suspended, or says other times than it did, makes up for
// nothing; which it was shows in the time that was to come next.
func (w world) base() time.Time {
	s := w.schedule.Status
	switch {
	case s.ObservedGeneration == 0: // nobody has looked yet
		return w.schedule.CreationTimestamp.Time
	case s.Internal.HandledTime == nil, s.NextScheduleTime == nil, !w.due(s.Internal.HandledTime.Time).Equal(s.NextScheduleTime.Time), s.Internal.HandledTime.Sub(w.now) > maxAhead:
		return w.now.Truncate(time.Second)
	}
	return s.Internal.HandledTime.Time
}

func invalid(w world, p plan) (plan, bool) {
	if w.calendar != nil && w.calendar.next(w.now).IsZero() {
		w.problem = fmt.Sprintf("spec.schedule %q names no time within %d years; %s", w.schedule.Spec.Schedule, horizon, exampleTimes)
	}
	if w.problem == "" {
		return p, false
	}
	p.handled = time.Time{}
	p.ready.Status, p.ready.Reason, p.ready.Message = metav1.ConditionFalse, v1alpha1.ReasonScheduleInvalid, w.problem
	return p, true
}

func suspended(w world, p plan) (plan, bool) {
	if !w.schedule.Spec.Suspend {
		return p, false
	}
	p.handled = time.Time{}
	p.ready.Reason = v1alpha1.ReasonSuspended
	p.ready.Message = "spec.suspend is true: no Runs are created, also not later for the times that pass"
	return p, true
}

func idle(w world, p plan) (plan, bool) {
	return p, w.pending().IsZero()
}

// pending is the time that is due: of several that came, the last; zero: none.
func (w world) pending() time.Time { return w.calendar.last(w.base(), w.past()) }

// maxCounted is how many times that passed are counted one by one.
const maxCounted = 100

// passing counts the times that came before the one that is due, but for those
// that a Run was made for before a crash.
func passing(w world, p plan) plan {
	n := w.calendar.count(p.handled, w.pending(), maxCounted+2) - 1
	for i := range w.runs {
		if t := timeOf(&w.runs[i]); t.After(p.handled) && t.Before(w.pending()) {
			n--
		}
	}
	if n <= 0 {
		return p
	}
	last := w.pending()
	for last.Equal(w.pending()) || w.of(last) != nil {
		last = w.calendar.last(p.handled, last.Add(-time.Second))
	}
	p.missed, p.missedLast = int64(min(n, maxCounted)), last
	return p.telling(missed("No Run for %s: of several times that passed the last one counts", many(n, last)))
}

// many are n times, the last of which is one.
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

func handled(w world, p plan) (plan, bool) {
	if w.of(w.pending()) == nil {
		return p, false
	}
	return passing(w, p).makes(w.pending()), true
}

// left is how long a Run for the time that is due may still be made.
func (w world) left() time.Duration {
	return w.deadline() - w.past().Sub(w.pending())
}

func late(w world, p plan) (plan, bool) {
	if w.left() >= 0 {
		return p, false
	}
	why := "it was %s late, and spec.startingDeadline is %s"
	if others := w.active(); len(others) > 0 && w.schedule.Spec.ConcurrencyPolicy == v1alpha1.ConcurrencyReplace {
		why = naming(others) + " had not ended after %s, and spec.startingDeadline is %s"
	}
	return passing(w, p).missing(w.pending(), fmt.Sprintf(why, w.past().Sub(w.pending()).Truncate(time.Second), w.schedule.Spec.StartingDeadline)), true
}

func free(w world, p plan) (plan, bool) {
	if len(w.active()) > 0 && w.schedule.Spec.ConcurrencyPolicy != v1alpha1.ConcurrencyAllow {
		return p, false
	}
	return passing(w, p).making(w, w.pending()), true
}

func forbidden(w world, p plan) (plan, bool) {
	if w.schedule.Spec.ConcurrencyPolicy == v1alpha1.ConcurrencyReplace {
		return p, false
	}
	return passing(w, p).missing(w.pending(), naming(w.active())+" is still active, and spec.concurrencyPolicy is Forbid"), true
}

func replacing(w world, p plan) (plan, bool) {
	for _, run := range w.active() {
		if run.Spec.DesiredState != v1alpha1.DesiredStopped && run.DeletionTimestamp.IsZero() {
			p.stop = append(p.stop, run)
		}
	}
	p = passing(w, p)
	if before := w.calendar.last(p.handled, w.pending().Add(-time.Second)); !before.IsZero() {
		p.handled = before // what is due is still open
	}
	text := fmt.Sprintf("Waiting for %s to end, which the Run for %s replaces", naming(w.active()), clockTime(w.pending()))
	return p.waiting(text, min(w.left()+time.Second, w.due(w.pending()).Sub(w.now))), true
}

// maxNamed is how many Runs a message names.
const maxNamed = 3

// naming names Runs, and says of those that do not work what they wait for.
func naming(runs []*v1alpha1.Run) string {
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

// surplus are the finished Runs beyond what is kept, the oldest. One whose time
// is not in the status yet stays: it is how the next look knows that it was made.
func surplus(w world) []*v1alpha1.Run {
	var out []*v1alpha1.Run
	keep := map[bool]int{true: limit(w.schedule.Spec.SuccessfulRunsHistoryLimit, 3), false: limit(w.schedule.Spec.FailedRunsHistoryLimit, 5)}
	for i := len(w.runs) - 1; i >= 0; i-- {
		run := &w.runs[i]
		if run.Status.CompletionTime == nil || !run.DeletionTimestamp.IsZero() {
			continue
		}
		well := succeeded(run)
		if keep[well]--; keep[well] < 0 && recorded(w.schedule, run) {
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

// recorded says whether the status tells that a Run was made.
func recorded(s *v1alpha1.Schedule, run *v1alpha1.Run) bool {
	return s.Status.Internal.HandledTime != nil && !timeOf(run).After(s.Status.Internal.HandledTime.Time)
}
