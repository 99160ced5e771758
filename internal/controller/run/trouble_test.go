package run

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/gen"
)

// Events are read only where nothing else says why a pod does not start: a pod
// that starts in time costs no request.
func TestWhenEventsAreRead(t *testing.T) {
	cases := map[string]struct {
		after time.Duration
		then  func(*cluster)
		want  bool
	}{
		"not of a new pod":             {patient - time.Second, func(*cluster) {}, false},
		"of one that is mute for long": {patient, func(*cluster) {}, true},
		"not of one that runs":         {time.Minute, starts(1), false},
		"not of one that has reported": {time.Minute, reports(1), false},
		"not of one that says why":     {time.Minute, waits(1, "ImagePullBackOff", ""), false},
		"not of one that has ended":    {time.Minute, exits(1, 1), false},
		"not of one that goes":         {time.Minute, isDeleted(1), false},
		"of one that no node takes":    {time.Minute, isUnschedulable(1), true},
		"of one that makes containers": {time.Minute, waits(1, "ContainerCreating", ""), true},
		"not of one that was held back": {time.Minute, func(c *cluster) {
			c.pod(1).Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated}}
		}, false},
		"not of one that fetches": {time.Minute, func(c *cluster) {
			c.pod(1).Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: fetchContainer, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
		}, false},
		"not of one that is gone": {time.Minute, vanishes(1), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, gen.Run(), gen.Agent())
			c.step()
			c.step()
			c.now = c.now.Add(tc.after)
			tc.then(c)
			if got := mute(c.world()); got != tc.want {
				t.Errorf("mute() = %t, want %t", got, tc.want)
			}
		})
	}
}

// Kubelets write events in one way, schedulers in another.
func TestWhenEventsHappened(t *testing.T) {
	noon, later := metav1.NewTime(gen.Noon), gen.Noon.Add(time.Minute)
	for name, e := range map[string]corev1.Event{
		"by its last time":    {LastTimestamp: metav1.NewTime(later)},
		"by its time":         {EventTime: metav1.NewMicroTime(later)},
		"by that of a series": {EventTime: metav1.NewMicroTime(gen.Noon), Series: &corev1.EventSeries{LastObservedTime: metav1.NewMicroTime(later)}},
	} {
		e.CreationTimestamp = noon
		if got := happened(e); !got.Equal(later) {
			t.Errorf("%s: %s, want %s", name, got, later)
		}
	}
}

// A pod that is not placed because of its volume says so in the volume's words.
func TestUnplacedPodSaysWhatItsVolumeSays(t *testing.T) {
	c := newCluster(t, gen.Run(), gen.Agent(durably))
	c.step()
	c.step()
	isUnschedulable(1)(c)
	c.trouble = `ProvisioningFailed: storageclass.storage.k8s.io "fast" not found`
	c.step()
	want := `0/1 nodes are available: 1 Insufficient memory.: ProvisioningFailed: storageclass.storage.k8s.io "fast" not found; make room, or change podTemplate of the Agent`
	if reasonOf(c.run) != v1alpha1.ReasonUnschedulable || messageOf(c.run) != want {
		t.Errorf("the Run is %s: %s", reasonOf(c.run), messageOf(c.run))
	}
}
