package run

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

func TestHowLongClaimsStay(t *testing.T) {
	const day = 24 * time.Hour
	cases := map[string]struct {
		retain, seconds string
		outcome         metav1.ConditionStatus
		age             time.Duration
		done            bool
		left            time.Duration
	}{
		"a failed one stays a day, unless told otherwise": {"OnFailure", "86400s", metav1.ConditionFalse, time.Hour, false, day - time.Hour},
		"and goes after it":                          {"OnFailure", "86400s", metav1.ConditionFalse, day, true, 0},
		"that of a success goes at once":             {"OnFailure", "86400s", metav1.ConditionTrue, 0, true, 0},
		"Never means at once":                        {"Never", "86400s", metav1.ConditionFalse, 0, true, 0},
		"Always means after a success too":           {"Always", "60s", metav1.ConditionTrue, time.Second, false, 59 * time.Second},
		"0 seconds mean at once":                     {"Always", "0s", metav1.ConditionTrue, 0, true, 0},
		"one that somebody scribbled on stays a day": {"Perhaps", "soon", metav1.ConditionTrue, time.Hour, false, day - time.Hour},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			ended := metav1.NewTime(gen.Noon)
			s := state{now: gen.Noon.Add(tc.age), run: gen.Run(func(r *v1alpha1.Run) {
				r.Status.CompletionTime = &ended
				r.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSucceeded, Status: tc.outcome}}
			})}
			s.volume = &corev1.PersistentVolumeClaim{}
			s.volume.Annotations = map[string]string{v1alpha1.AnnotationRetain: tc.retain, v1alpha1.AnnotationRetention: tc.seconds}
			if done, left := volumeExpired(s); done != tc.done || left != tc.left {
				t.Errorf("outlived() = %t, %s, want %t, %s", done, left, tc.done, tc.left)
			}
		})
	}
}

func TestRefusedClaims(t *testing.T) {
	claims := schema.GroupResource{Resource: "persistentvolumeclaims"}
	cases := map[string]struct {
		err    error
		known  bool
		reason string
	}{
		"a full quota is waited for":        {apierrors.NewForbidden(claims, "c", textError("exceeded quota: storage")), true, v1alpha1.ReasonQuotaExceeded},
		"a policy that denies is final":     {apierrors.NewForbidden(claims, "c", textError("no volumes on Sundays")), true, v1alpha1.ReasonAdmissionDenied},
		"an invalid one is the Agent's":     {apierrors.NewInvalid(schema.GroupKind{Kind: "PersistentVolumeClaim"}, "c", field.ErrorList{field.Invalid(nil, 1, "too long")}), true, v1alpha1.ReasonMisconfigured},
		"a right that the operator lacks":   {apierrors.NewForbidden(claims, "c", textError(`User "x" cannot create resource "persistentvolumeclaims"`)), false, ""},
		"a server that is down is no news":  {errDown, false, ""},
		"what nobody knows is waited for":   {apierrors.NewBadRequest("bad luck"), true, v1alpha1.ReasonPending},
		"a webhook that denies is a denial": {apierrors.NewBadRequest(`admission webhook "g" denied the request: no`), true, v1alpha1.ReasonAdmissionDenied},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, gen.Run(), gen.Agent(gen.Durable))
			c.step()
			if got := isAnswer(tc.err); got != tc.known {
				t.Errorf("isAnswer() = %t, want %t", got, tc.known)
			}
			s := c.observed()
			s.facts.volumeRefused = tc.err
			if got := decide(s); tc.known && got.reason != tc.reason {
				t.Errorf("the Run is %s, want %s", got.reason, tc.reason)
			}
		})
	}
}

type textError string

func (e textError) Error() string { return string(e) }

// A volume that somebody deleted takes what was done with it.
func TestWorkIsNotStartedAgainOnAnEmptyVolume(t *testing.T) {
	for name, tc := range map[string]struct {
		mods []func(*v1alpha1.RunProgress)
		want string
	}{
		"after effects":  {[]func(*v1alpha1.RunProgress){begun}, v1alpha1.ReasonPodLost},
		"before effects": {nil, v1alpha1.ReasonStarting},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, gen.Run(), gen.Agent(gen.Durable))
			c.begin()
			starts(1)(c)
			reports(1, tc.mods...)(c)
			vanishes(1)(c)
			c.claim = nil
			for range 4 {
				c.step()
			}
			if got := reasonOf(c.run); got != tc.want {
				t.Errorf("the Run is %s: %s, want %s", got, messageOf(c.run), tc.want)
			}
		})
	}
}

// mountless is what a pod looks like whose volumes are not there.
func mountless(trouble string) func(*cluster) {
	return func(c *cluster) { c.trouble = trouble }
}

// sidecarsRun is a pod whose runner has ended and whose sidecars have not yet.
func sidecarsRun(n int) func(*cluster) {
	return func(c *cluster) {
		pod := c.pod(n)
		pod.Status.Phase = corev1.PodRunning
		pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: runnerpod.SandboxContainer, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	}
}

func fetchFails(n int, code int32) func(*cluster) {
	return func(c *cluster) {
		pod := c.pod(n)
		pod.Status = endedBefore(runnerpod.FetchContainer, corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: metav1.NewTime(c.now)}).Status
	}
}

// claimIsDeleted is a user who deletes the claim. It stays as long as a pod uses it.
func claimIsDeleted(c *cluster) {
	if now := metav1.NewTime(c.now); c.claim != nil && c.claim.DeletionTimestamp == nil {
		c.claim.DeletionTimestamp = &now
	}
}

// isUnplaced is a pod that the scheduler has no node for.
func isUnplaced(n int, message string) func(*cluster) {
	return func(c *cluster) {
		isUnschedulable(n)(c)
		c.pod(n).Status.Conditions[0].Message = message
	}
}

var storiesOfVolumes = map[string]story{
	"volume-of-a-success": {
		title: "the volume of a success stays for its retention, longer than its pod",
		agent: func(a *v1alpha1.Agent) { gen.Durable(a); a.Spec.Retention.Volume = nil },
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner commits", reports(1, commits("Finished", ""))),
			at(3*second, "x-1 exits 0", exits(1, 0)),
		},
	},
	"volume-retained-on-failure": {
		title: "with keepVolume: OnFailure, the volume of a success is deleted after its pods",
		agent: func(a *v1alpha1.Agent) { gen.Durable(a); a.Spec.Retention.KeepVolume = v1alpha1.KeepVolumeOnFailure },
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner commits", reports(1, commits("Finished", ""))),
			at(3*second, "x-1 exits 0", exits(1, 0)),
		},
	},
	"volume-retained-for-nothing": {
		title: "with retention.volume: 0s, the volume of a success is deleted after its pods",
		agent: func(a *v1alpha1.Agent) { gen.Durable(a); a.Spec.Retention.Volume = new(v1alpha1.Duration("0s")) },
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner commits", reports(1, commits("Finished", ""))),
			at(3*second, "x-1 exits 0", exits(1, 0)),
		},
	},
	"volume-of-a-failure": {
		title: "the volume of a failure stays for its retention, longer than its pod",
		agent: func(a *v1alpha1.Agent) { gen.Durable(a); a.Spec.Retention.Pod = "10s" },
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner commits", reports(1, commits("Stuck", "it repeats itself"))),
			at(3*second, "x-1 exits 65", exits(1, 65)),
		},
	},
	"volume-late": {
		title: "a volume that is not there is waited for, and the kubelet quoted",
		agent: gen.Durable,
		beats: []beat{
			at(25*second, "the kubelet warns", mountless("FailedAttachVolume: Multi-Attach error for volume \"pv-1\"")),
			at(90*second, "the volume comes, and x-1 runs", func(c *cluster) { c.trouble = ""; starts(1)(c) }),
			at(91*second, "the runner commits", reports(1, commits("Finished", ""))),
			at(92*second, "x-1 exits 0", exits(1, 0)),
		},
	},
	"volume-never": {
		title: "one that never comes ends the Run after limits.pending",
		agent: gen.Durable,
		beats: []beat{
			at(25*second, "the kubelet warns", mountless("FailedMount: configmap \"company-ca\" not found")),
		},
	},
	"volume-deleted": {
		title: "no attempt starts on a volume that is being deleted after the work began to change things",
		agent: gen.Durable,
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner begins to change things", reports(1, begun)),
			at(4*second, "the claim is deleted, and stays while x-1 uses it", claimIsDeleted),
			at(5*second, "x-1 is deleted, and exits 143", all(isDeleted(1), exits(1, 143))),
			at(6*second, "x-1 is gone", vanishes(1)),
		},
	},
	"volume-deleted-before-placed": {
		title: "a pod that waits for a node when its volume is deleted is not waited for",
		agent: gen.Durable,
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner begins to change things", reports(1, begun)),
			at(3*second, "x-1 is evicted", isEvicted(1)),
			at(5*second, "no node takes x-2", isUnschedulable(2)),
			at(60*second, "the claim is deleted", all(claimIsDeleted, isUnplaced(2, `0/1 nodes are available: persistentvolumeclaim "deckhand-run-x-0" is being deleted.`))),
		},
	},
	"volume-deleted-before-mounted": {
		title: "a pod whose volume is deleted before it starts is replaced, if nothing was changed",
		agent: gen.Durable,
		beats: []beat{
			at(1*second, "the claim is deleted", claimIsDeleted),
			at(25*second, "the kubelet warns", mountless(`FailedMount: PVC is being deleted`)),
			at(50*second, "x-2 runs", func(c *cluster) { c.trouble = ""; starts(2)(c) }),
			at(51*second, "the runner commits", reports(2, commits("Finished", ""))),
			at(52*second, "x-2 exits 0", exits(2, 0)),
		},
	},
	"volume-deleted-early": {
		title: "work that changed nothing starts again on a new volume once the deleted one is gone",
		agent: gen.Durable,
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner reports", reports(1)),
			at(4*second, "the claim is deleted, and stays while x-1 uses it", claimIsDeleted),
			at(5*second, "x-1 is evicted", isEvicted(1)),
			at(9*second, "x-2 runs", starts(2)),
			at(10*second, "the runner commits", reports(2, commits("Finished", ""))),
			at(11*second, "x-2 exits 0", exits(2, 0)),
		},
	},
	"sidecars-live-on": {
		title: "a Run is done when its runner says so, whatever its sidecars do",
		agent: func(a *v1alpha1.Agent) { gen.Coder(a); a.Spec.Tools = a.Spec.Tools[:1] },
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner commits", reports(1, commits("Finished", ""))),
			at(3*second, "x-1 exits 0, its sandbox runs", func(c *cluster) { exits(1, 0)(c); sidecarsRun(1)(c) }),
		},
	},
	"fetch-fails": {
		title: "a repository that cannot be reached is tried once more",
		agent: func(a *v1alpha1.Agent) { a.Spec.Workspace.Git = &v1alpha1.Git{URL: "https://git.example.com/app.git"} },
		beats: []beat{
			at(1*second, "x-1 cannot reach it", fetchFails(1, 69)),
			at(15*second, "x-2 cannot either", fetchFails(2, 69)),
		},
	},
}

func TestStoriesOfVolumes(t *testing.T) { playStories(t, storiesOfVolumes) }

// goldenClaim compares a claim with its file.
func goldenClaim(t *testing.T, file string, claim *corev1.PersistentVolumeClaim) {
	t.Helper()
	got, err := yaml.Marshal(claim)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, got, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}
