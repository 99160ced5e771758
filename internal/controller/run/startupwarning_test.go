package run

import (
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// Events are read only where nothing else says why a pod does not start: a pod
// that starts in time costs no request.
func TestWhenEventsAreRead(t *testing.T) {
	cases := map[string]struct {
		after time.Duration
		then  func(*cluster)
		want  bool
	}{
		"not of a new pod":             {eventDelay - time.Second, func(*cluster) {}, false},
		"of one that is mute for long": {eventDelay, func(*cluster) {}, true},
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
			c.pod(1).Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: runnerpod.FetchContainer, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
		}, false},
		"not of one that is gone": {time.Minute, vanishes(1), false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, gen.Run(), gen.Agent())
			c.begin()
			c.now = c.now.Add(tc.after)
			tc.then(c)
			if got := isSilent(c.observed(), eventDelay); got != tc.want {
				t.Errorf("mute() = %t, want %t", got, tc.want)
			}
		})
	}
}

// The look at the ConfigMaps of a pod comes seconds after it was created, if it mounts any.
func TestConfigMapsAreLookedForSoon(t *testing.T) {
	for name, tc := range map[string]struct {
		agent func(*v1alpha1.Agent)
		want  time.Duration
	}{
		"with files":    {withRules, mountDelay - time.Second},
		"without files": {func(*v1alpha1.Agent) {}, eventDelay},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, gen.Run(), gen.Agent(tc.agent))
			c.begin()
			c.now = c.now.Add(time.Second)
			if got := decide(c.observed()).wake; got != tc.want {
				t.Errorf("the operator looks again after %s, want %s", got, tc.want)
			}
		})
	}
}

// The kubelet does not say that a pull Secret is missing: the Run names those that it needs.
func TestPullThatFailsNamesItsSecrets(t *testing.T) {
	c := newCluster(t, gen.Run(), gen.Agent())
	c.supply.ImagePullSecrets = []string{"mirror", "hub"}
	c.begin()
	waits(1, "ErrImagePull", "401 Unauthorized")(c)
	c.step()
	const want = `Image "runner:1" cannot be pulled yet (ErrImagePull: 401 Unauthorized; the pull Secrets mirror, hub must exist in namespace team-a)`
	if got, _, _ := strings.Cut(messageOf(c.run), ". Waits until "); got != want {
		t.Errorf("the Run says %s\nwant %s", got, want)
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
		if got := lastSeen(e); !got.Equal(later) {
			t.Errorf("%s: %s, want %s", name, got, later)
		}
	}
}

// A pod that is not placed says why once, and what to do about just that.
func TestUnplacedPodSaysWhyAndWhatToDo(t *testing.T) {
	const full, unbound = "0/1 nodes are available: 1 Insufficient memory", "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims"
	const missing = `0/1 nodes are available: persistentvolumeclaim "c" bound to non-existent persistentvolume "v"`
	for name, tc := range map[string]struct{ scheduler, trouble, want string }{
		"in the scheduler's words": {full + ".", "", full + ". Free resources on the cluster nodes, or change spec.podTemplate of the Agent"},
		"and not again in its event's": {
			full + ".", "FailedScheduling: " + full,
			full + ". Free resources on the cluster nodes, or change spec.podTemplate of the Agent",
		},
		"in the scheduler's words of a volume": {missing + ".", "", missing + ". Look at StorageClass fast (kubectl get storageclass), or correct spec.workspace.storageClassName of the Agent"},
		"without the rest of a message of preemption": {
			unbound + ". not found.", "",
			unbound + ". Look at StorageClass fast (kubectl get storageclass), or correct spec.workspace.storageClassName of the Agent",
		},
		"in its volume's words": {
			unbound + ".", `ProvisioningFailed: storageclass.storage.k8s.io "fast" not found`,
			unbound + `.: ProvisioningFailed: storageclass.storage.k8s.io "fast" not found. Look at StorageClass fast (kubectl get storageclass), or correct spec.workspace.storageClassName of the Agent`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, gen.Run(), gen.Agent(gen.Durable, func(a *v1alpha1.Agent) { a.Spec.Workspace.StorageClassName = new("fast") }))
			c.begin()
			isUnschedulable(1)(c)
			c.pod(1).Status.Conditions[0].Message = tc.scheduler
			c.trouble = tc.trouble
			c.step()
			if said, _, _ := strings.Cut(messageOf(c.run), ". Waits until "); reasonOf(c.run) != v1alpha1.ReasonUnschedulable || said != tc.want {
				t.Errorf("the Run is %s: %s\nwant %s", reasonOf(c.run), messageOf(c.run), tc.want)
			}
		})
	}
}

// What is said of a claim that cannot be had comes before what is said of its pod,
// which only repeats that it is not there.
func TestTroublesOfClaimComeFirst(t *testing.T) {
	c := newCluster(t, gen.Run(), gen.Agent(gen.Durable))
	c.begin()
	c.now = c.now.Add(eventDelay)
	isUnschedulable(1)(c)
	s := c.observed()
	s.volume.UID = "claim"
	events := warnings{string(s.pod().UID): "no node", "claim": "no class"}
	for phase, want := range map[corev1.PersistentVolumeClaimPhase]string{corev1.ClaimPending: "Failed: no class", corev1.ClaimBound: "Failed: no node"} {
		s.volume.Status.Phase = phase
		got, err := (&Reconciler{live: events}).observeStartupWarning(t.Context(), s)
		if err != nil || got != want {
			t.Errorf("of a claim that is %s: %q (%v), want %q", phase, got, err, want)
		}
	}
}

// What was last seen counts, not what was last written: kubelets repeat themselves,
// and the API server's clock is not theirs.
func TestEventsAreOrderedByWhenTheyHappened(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	at := func(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }
	for name, tc := range map[string]struct {
		event corev1.Event
		want  time.Time
	}{
		"a kubelet's":             {corev1.Event{LastTimestamp: metav1.NewTime(at(1))}, at(1)},
		"created by a fast clock": {corev1.Event{LastTimestamp: metav1.NewTime(at(1)), ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(at(9))}}, at(1)},
		"of the newer kind":       {corev1.Event{EventTime: metav1.NewMicroTime(at(2))}, at(2)},
		"repeated":                {corev1.Event{EventTime: metav1.NewMicroTime(at(2)), Series: &corev1.EventSeries{LastObservedTime: metav1.NewMicroTime(at(5))}}, at(5)},
		"without a time":          {corev1.Event{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(at(3))}}, at(3)},
	} {
		if got := lastSeen(tc.event); !got.Equal(tc.want) {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

// A Run that has waited too long promises no more to go on.
func TestGivenUpPromisesNothing(t *testing.T) {
	c := newCluster(t, gen.Run(), gen.Agent())
	c.begin()
	const missing = "Secret git is not there"
	s := c.observed()
	if got := waitingFor(s, v1alpha1.ReasonSecretMissing, missing, within).message; got != missing+within+". Waits until 12:10:00 UTC (limits.pending)" {
		t.Errorf("while it waits, it says: %s", got)
	}
	s.now = s.now.Add(s.limits().pending)
	want := "Timed out after 10m0s (limits.pending) waiting for: " + missing + ". Fix the cause and create a new Run"
	if got := waitingFor(s, v1alpha1.ReasonSecretMissing, missing, within).message; got != want {
		t.Errorf("at the end it says: %s", got)
	}
}

// warnings are events, by what they are about.
type warnings map[string]string

func (warnings) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	panic("nothing is got")
}

func (e warnings) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(opts)
	uid, _ := o.FieldSelector.RequiresExactMatch("involvedObject.uid")
	if text, has := e[uid]; has {
		list.(*corev1.EventList).Items = []corev1.Event{{Reason: "Failed", Message: text}}
	}
	return nil
}
