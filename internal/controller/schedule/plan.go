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
	"github.com/deckhand-dev/deckhand/internal/runstatus"
)

// A plan is what is to be done about a Schedule, and what is to be said of it.
type plan struct {
	// create is the Run to make for the time due; empty: none.
	create *v1alpha1.Run
	due    time.Time
	// stop and prune are Runs.
	stop, prune []*v1alpha1.Run

	// handled is until when all times were seen to, made the one that a Run was
	// made for, missed how many times there was none, missedLast the last of them.
	handled    time.Time
	made       time.Time
	missed     int64
	missedLast time.Time

	ready metav1.Condition
	told  []telling
	wake  time.Duration
}

// A telling is something that people are told.
type telling struct{ kind, reason, action, note string }

func missed(format string, args ...any) telling {
	return telling{corev1.EventTypeWarning, eventMissed, "Miss", fmt.Sprintf(format, args...)}
}

// Reasons of the events of a Schedule.
const (
	eventCreated = "RunCreated"
	eventMissed  = "RunMissed"
	eventRefused = "RunRefused"
)

// telling has people told of something.
func (p plan) telling(t telling) plan {
	p.told = append(slices.Clip(p.told), t)
	return p
}

// making has the Run for the time that is due made, or found.
func (p plan) making(w world, due time.Time) plan {
	p.create, p.due = runOf(w.schedule, due), due
	return p.makes(due)
}

// makes records that there is a Run for a time.
func (p plan) makes(due time.Time) plan {
	p.handled, p.made = due, due
	return p
}

// missing records that there is no Run for a time, and never will be.
func (p plan) missing(due time.Time, why string) plan {
	p.create, p.stop = nil, nil
	p.handled, p.made = due, time.Time{}
	p.missed++
	p.missedLast = due
	return p.telling(missed("No Run for %s: %s", clockTime(due), why))
}

// waiting says what holds up a Run that is due, and leaves its time open.
func (p plan) waiting(message string, wake time.Duration) plan {
	p.ready.Message = message
	p.wake = wake
	return p
}

// clockTime is a time as people and machines read it.
func clockTime(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// runOf is the Run for a time. It carries nothing of the Schedule's own labels
// and annotations: a tool that tracks the Schedule by them would take the Run for
// its own.
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
