package schedule

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/calendar"
	"github.com/deckhand-dev/deckhand/internal/cluster/statuspatch"
	"github.com/deckhand-dev/deckhand/internal/revision/specsize"
)

// A cluster is a Schedule with its Runs and an operator, and a clock that jumps
// from one thing that happens to the next.
type cluster struct {
	schedule *v1alpha1.Schedule
	runs     []v1alpha1.Run
	taken    string // a name that is somebody else's
	made     map[string]int
	now      time.Time
	wake     time.Time // zero: nothing wakes the operator
	away     bool
	kept     v1alpha1.ScheduleSpec // what shrinks makes of the spec
	log      []string
}

func newCluster(s *v1alpha1.Schedule) *cluster {
	return &cluster{schedule: s, now: s.CreationTimestamp.Time, made: map[string]int{}}
}

func (c *cluster) note(format string, args ...any) {
	c.log = append(c.log, c.now.Format("Mon 15:04:05  ")+fmt.Sprintf(format, args...))
}

func (c *cluster) observe() state {
	o := state{schedule: c.schedule.DeepCopy(), now: c.now}
	var err error
	if o.calendar, err = calendar.Read(c.schedule.Spec.Schedule, c.schedule.Spec.TimeZone); err != nil {
		o.problem = err.Error()
	}
	for i := range c.runs {
		o.runs = append(o.runs, *c.runs[i].DeepCopy())
	}
	sortByTime(o.runs)
	return o
}

// step lets the operator look once.
func (c *cluster) step() {
	o := c.observe()
	o.facts = c.apply(decide(o))
	p := decide(o)
	had := c.schedule.Status
	c.schedule.Status = statusOf(o, p)
	for _, n := range p.notices {
		if n.reason != eventCreated { // apply notes it
			c.note("  %s: %s", n.reason, n.note)
		}
	}
	c.noteChanges(had)
	c.wake = time.Time{}
	if d := wakeAfter(o, p); d > 0 {
		c.wake = c.now.Add(d)
	}
}

func (c *cluster) apply(p plan) facts {
	for _, run := range p.stop {
		c.note("  stops %s", run.Name)
		c.of(run.Name).Spec.DesiredState = v1alpha1.DesiredStopped
	}
	for _, run := range p.prune {
		c.note("  deletes %s", run.Name)
		c.runs = slices.DeleteFunc(c.runs, func(r v1alpha1.Run) bool { return r.Name == run.Name })
	}
	switch {
	case p.create == nil:
	case p.create.Name == c.taken:
		return facts{nameTaken: true}
	default:
		c.note("  makes %s for %s", p.create.Name, p.create.Annotations[v1alpha1.AnnotationScheduledAt])
		c.made[p.create.Name]++
		c.runs = append(c.runs, *p.create)
		return facts{created: true}
	}
	return facts{}
}

// noteChanges notes what changed in the status.
func (c *cluster) noteChanges(had v1alpha1.ScheduleStatus) {
	is := c.schedule.Status
	ready := func(s v1alpha1.ScheduleStatus) string {
		if len(s.Conditions) == 0 {
			return ""
		}
		return s.Conditions[0].Reason + ": " + s.Conditions[0].Message
	}
	if ready(had) != ready(is) {
		c.note("  %s", ready(is))
	}
	if had.Missed != is.Missed {
		c.note("  missed %d, the last %s", is.Missed, clockTime(is.LastMissedTime.Time))
	}
	if next := is.NextScheduleTime; next != nil && !next.Equal(had.NextScheduleTime) {
		c.note("  next %s", next.UTC().Format("Mon 2006-01-02 15:04:05"))
	} else if next == nil && had.NextScheduleTime != nil {
		c.note("  next never")
	}
}

func (c *cluster) of(name string) *v1alpha1.Run {
	for i := range c.runs {
		if c.runs[i].Name == name {
			return &c.runs[i]
		}
	}
	return nil
}

// until lets time pass, and the operator work when it wakes.
func (c *cluster) until(t time.Time) {
	for !c.away && !c.wake.IsZero() && !c.wake.After(t) {
		c.now = c.wake
		c.step()
	}
	c.now = t
}

// ends ends the oldest Run that works.
func ends(status metav1.ConditionStatus) func(*cluster) {
	return func(c *cluster) {
		for i := range c.runs {
			if r := &c.runs[i]; r.Status.CompletionTime == nil {
				at := metav1.NewTime(c.now)
				r.Status.CompletionTime = &at
				r.Status.Conditions = statuspatch.MergeConditions(nil, at, 1, metav1.Condition{Type: v1alpha1.ConditionSucceeded, Status: status, Reason: "Ended"})
				return
			}
		}
	}
}

var (
	succeeds = ends(metav1.ConditionTrue)
	fails    = ends(metav1.ConditionFalse)
)

// grows makes the spec larger than the cache keeps, which drops it; shrinks makes it as it was.
func grows(c *cluster) {
	c.kept = *c.schedule.Spec.DeepCopy()
	c.schedule.Spec.RunTemplate.Spec.Input = &runtime.RawExtension{Raw: []byte(`{"a":"` + strings.Repeat("x", specsize.Max) + `"}`)}
	specsize.Drop(c.schedule, &c.schedule.Spec)
	c.schedule.Generation++
}

func shrinks(c *cluster) {
	c.schedule.Annotations = nil
	changes(func(s *v1alpha1.ScheduleSpec) { *s = c.kept })(c)
}

func leaves(c *cluster)  { c.away = true }
func returns(c *cluster) { c.away = false }

func changes(mod func(*v1alpha1.ScheduleSpec)) func(*cluster) {
	return func(c *cluster) {
		mod(&c.schedule.Spec)
		c.schedule.Generation++
	}
}

func suspends(on bool) func(*cluster) {
	return changes(func(s *v1alpha1.ScheduleSpec) { s.Suspend = on })
}
