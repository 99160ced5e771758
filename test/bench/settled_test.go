package bench

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
)

func TestNotSettledOnce(t *testing.T) {
	event := func(kind, name, action string, series *eventsv1.EventSeries) eventsv1.Event {
		return eventsv1.Event{Regarding: corev1.ObjectReference{Kind: kind, Name: name}, Action: action, Series: series}
	}
	for name, tc := range map[string]struct {
		events []eventsv1.Event
		want   []string
	}{
		"an event each": {
			events: []eventsv1.Event{event("Run", "a", "Settle", nil), event("Run", "b", "Settle", nil)},
		},
		"a Run without an event": {
			events: []eventsv1.Event{event("Run", "a", "Settle", nil)},
			want:   []string{"b: 0 times"},
		},
		"two events": {
			events: []eventsv1.Event{event("Run", "a", "Settle", nil), event("Run", "b", "Settle", nil), event("Run", "b", "Settle", nil)},
			want:   []string{"b: 2 times"},
		},
		"one event that occurred twice": {
			events: []eventsv1.Event{event("Run", "a", "Settle", &eventsv1.EventSeries{Count: 2}), event("Run", "b", "Settle", nil)},
			want:   []string{"a: 2 times"},
		},
		"other actions, kinds and Runs do not count": {
			events: []eventsv1.Event{
				event("Run", "a", "Settle", nil), event("Run", "a", "Wait", nil), event("Run", "b", "Settle", nil),
				event("Pod", "b", "Settle", nil), event("Run", "c", "Settle", nil), event("Run", "c", "Settle", nil),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := notSettledOnce([]string{"b", "a"}, settlements(tc.events))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("notSettledOnce() -want +got:\n%s", diff)
			}
		})
	}
}
