package schedule

import (
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
)

// A world is everything that one decision may depend on.
type world struct {
	schedule *v1alpha1.Schedule
	calendar *calendar // nil: problem says why
	problem  string
	runs     []v1alpha1.Run // those that it made, in the order of their times
	now      time.Time
}

// defaultDeadline is how late a Run may be made where the schema did not say it.
const defaultDeadline = 10 * time.Minute

func (w world) deadline() time.Duration {
	d, err := w.schedule.Spec.StartingDeadline.Value()
	if err != nil {
		return defaultDeadline
	}
	return d
}

// offset is what each time is put off by: always the same for one Schedule, and
// another for the next.
func (w world) offset() time.Duration {
	if w.schedule.Spec.Jitter == nil {
		return 0
	}
	most, err := w.schedule.Spec.Jitter.Value()
	if err != nil || most < time.Second {
		return 0
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(w.schedule.UID)) // a hash takes everything
	return time.Duration(h.Sum32()) * time.Second % (most.Truncate(time.Second) + time.Second)
}

// due is when the first time after one is acted upon; zero: there is none.
func (w world) due(after time.Time) time.Time {
	t := w.calendar.next(after)
	if t.IsZero() {
		return t
	}
	return t.Add(w.offset())
}

// past are times whose moment has come by now.
func (w world) past() time.Time { return w.now.Add(-w.offset()) }

// of is the Run that was made for a time; nil: there is none.
func (w world) of(t time.Time) *v1alpha1.Run {
	name := nameOf(w.schedule.Name, t)
	for i := range w.runs {
		if w.runs[i].Name == name {
			return &w.runs[i]
		}
	}
	return nil
}

// active are the Runs that have not finished. One that is being deleted works
// until it is gone.
func (w world) active() []*v1alpha1.Run {
	var out []*v1alpha1.Run
	for i := range w.runs {
		if w.runs[i].Status.CompletionTime == nil {
			out = append(out, &w.runs[i])
		}
	}
	return out
}

// nameOf is that of the Run for a time.
func nameOf(schedule string, t time.Time) string {
	return schedule + "-" + strconv.FormatInt(t.Unix()/60, 10)
}

// timeOf is the time that a Run is for; of one that does not say it, its
// creation.
func timeOf(r *v1alpha1.Run) time.Time {
	if t, err := time.Parse(time.RFC3339, r.Annotations[v1alpha1.AnnotationScheduledAt]); err == nil {
		return t
	}
	return r.CreationTimestamp.Time
}

func inOrder(runs []v1alpha1.Run) {
	slices.SortFunc(runs, func(a, b v1alpha1.Run) int { return timeOf(&a).Compare(timeOf(&b)) })
}
