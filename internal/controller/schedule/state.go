package schedule

import (
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/cluster/calendar"
)

// state is everything that a decision may depend on.
type state struct {
	facts
	schedule *v1alpha1.Schedule
	calendar *calendar.Calendar // nil: problem says why
	problem  string
	runs     []v1alpha1.Run // of the Schedule, in the order of their times
	now      time.Time
	// missing describes that the Agent or Workflow of the Runs does not exist; empty: it exists.
	missing string
}

// defaultDeadline is how late a Run may be created if the Schedule sets no deadline.
const defaultDeadline = 10 * time.Minute

func (s state) deadline() time.Duration {
	d, err := s.schedule.Spec.StartingDeadline.Value()
	if err != nil {
		return defaultDeadline
	}
	return d
}

// offset returns the delay of each time by spec.jitter: always the same for one Schedule, and
// different between Schedules.
func (s state) offset() time.Duration {
	if s.schedule.Spec.Jitter == nil {
		return 0
	}
	most, err := s.schedule.Spec.Jitter.Value()
	if err != nil || most < time.Second {
		return 0
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(s.schedule.UID)) // a hash takes everything
	return time.Duration(h.Sum32()) * time.Second % (most.Truncate(time.Second) + time.Second)
}

// due returns when the Run for the first time after another is due, or zero.
func (s state) due(after time.Time) time.Time {
	t := s.calendar.Next(after)
	if t.IsZero() {
		return t
	}
	return t.Add(s.offset())
}

// past returns the present time less the jitter: times of the calendar up to it are due.
func (s state) past() time.Time { return s.now.Add(-s.offset()) }

// of returns the Run for a time, or nil.
func (s state) of(t time.Time) *v1alpha1.Run {
	name := nameOf(s.schedule.Name, t)
	for i := range s.runs {
		if s.runs[i].Name == name {
			return &s.runs[i]
		}
	}
	return nil
}

// active returns the Runs that have not finished, including Runs that are being deleted.
func (s state) active() []*v1alpha1.Run {
	var out []*v1alpha1.Run
	for i := range s.runs {
		if s.runs[i].Status.CompletionTime == nil {
			out = append(out, &s.runs[i])
		}
	}
	return out
}

// nameOf returns the name of the Run for a time.
func nameOf(schedule string, t time.Time) string {
	return schedule + "-" + strconv.FormatInt(t.Unix()/60, 10)
}

// timeOf returns the time that a Run is for or, without the annotation, its creation.
func timeOf(r *v1alpha1.Run) time.Time {
	if t, err := time.Parse(time.RFC3339, r.Annotations[v1alpha1.AnnotationScheduledAt]); err == nil {
		return t
	}
	return r.CreationTimestamp.Time
}

func sortByTime(runs []v1alpha1.Run) {
	slices.SortFunc(runs, func(a, b v1alpha1.Run) int { return timeOf(&a).Compare(timeOf(&b)) })
}
