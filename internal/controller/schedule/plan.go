package schedule

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
)

// A plan is what to do for a Schedule and what to report, as data.
type plan struct {
	// create is the Run for the due time; nil: none.
	create *v1alpha1.Run
	due    time.Time
	// stop are Runs to stop, prune Runs to delete.
	stop, prune []*v1alpha1.Run

	// handled is the last handled time, made the last one with a Run, missed how many have none, missedLast the last of
	// these.
	handled    time.Time
	made       time.Time
	missed     int64
	missedLast time.Time

	ready   metav1.Condition
	notices []notice
	wake    time.Duration
}

// A notice is an Event to record.
type notice struct{ kind, reason, action, note string }

func missed(format string, args ...any) notice {
	return notice{corev1.EventTypeWarning, eventMissed, "Miss", fmt.Sprintf(format, args...)}
}

// Reasons of the events of a Schedule.
const (
	eventCreated = "RunCreated"
	eventMissed  = "RunMissed"
	eventRefused = "RunRefused"
)

// withNotice records an Event.
func (p plan) withNotice(n notice) plan {
	p.notices = append(slices.Clip(p.notices), n)
	return p
}

// withCreate creates the Run for the due time.
func (p plan) withCreate(s state, due time.Time) plan {
	p.create, p.due = runOf(s.schedule, due), due
	return p.withRun(due)
}

// withRun records that a time has a Run.
func (p plan) withRun(due time.Time) plan {
	p.handled, p.made = due, due
	return p
}

// withMissed records that a time has no Run and will have none.
func (p plan) withMissed(due time.Time, why string) plan {
	p.create, p.stop = nil, nil
	p.handled, p.made = due, time.Time{}
	p.missed++
	p.missedLast = due
	return p.withNotice(missed("No Run for %s: %s", clockTime(due), why))
}

// withWait reports why the due Run does not exist yet.
func (p plan) withWait(message string, wake time.Duration) plan {
	p.ready.Message = message
	p.wake = wake
	return p
}

// clockTime formats a time for messages and annotations.
func clockTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// runOf returns the Run for a time. It has none of the labels and annotations of the
// Schedule itself: a GitOps tool that tracks the Schedule by them would delete the Run.
func runOf(s *v1alpha1.Schedule, t time.Time) *v1alpha1.Run {
	labels := maps.Clone(s.Spec.RunTemplate.Labels)
	maps.DeleteFunc(labels, func(key, _ string) bool {
		return runstatus.IsTrackingKey(key) || strings.HasPrefix(key, v1alpha1.GroupVersion.Group+"/")
	})
	if labels == nil {
		labels = map[string]string{}
	}
	labels[v1alpha1.LabelSchedule] = s.Name
	return &v1alpha1.Run{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:       s.Namespace,
			Name:            nameOf(s.Name, t),
			Labels:          labels,
			Annotations:     map[string]string{v1alpha1.AnnotationScheduledAt: clockTime(t)},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(s, v1alpha1.GroupVersion.WithKind("Schedule"))},
		},
		Spec: *s.Spec.RunTemplate.Spec.DeepCopy(),
	}
}
