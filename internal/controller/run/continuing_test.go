package run

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/continuing"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// continuesFirst is a Run that continues the Run first.
func continuesFirst(r *v1alpha1.Run) {
	r.Spec.ContinueFrom = &v1alpha1.ContinueFrom{Run: "first", Workspace: v1alpha1.ContinueCopy}
}

// sharesFirst is a Run that works on the files of the Run first.
func sharesFirst(r *v1alpha1.Run) {
	r.Spec.ContinueFrom = &v1alpha1.ContinueFrom{Run: "first", Workspace: v1alpha1.ContinueShare}
}

// firstIs makes the Run first as it is at a time of a story.
func firstIs(mods ...func(*v1alpha1.Run)) func(*cluster) {
	return func(c *cluster) {
		run := gen.Run(mods...)
		run.Name, run.UID = "first", "uid-first"
		run.Status.Attempt = &v1alpha1.Attempt{Number: 1, Pod: "first-1", VolumeClaim: "deckhand-run-first-1234", StartedAt: metav1.NewTime(gen.Noon)}
		c.source = continuing.Source{Run: run, VolumeClaim: &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Namespace: gen.Namespace, Name: "deckhand-run-first-1234", UID: "uid-of-claim"},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("7Gi")}},
			},
		}}
	}
}

// hasEnded is a Run that ended with a reason, after 1,000 tokens for 0.25USD.
func hasEndedWith(reason string) func(*v1alpha1.Run) {
	return func(r *v1alpha1.Run) {
		cost, status := int64(250_000), metav1.ConditionFalse
		if reason == v1alpha1.ReasonFinished {
			status = metav1.ConditionTrue
		}
		at := metav1.NewTime(gen.Noon)
		r.Status.CompletionTime = &at
		r.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSucceeded, Status: status, Reason: reason}}
		r.Status.Progress = &v1alpha1.RunProgress{Usage: v1alpha1.Usage{TotalTokens: 1000, CostMicroUSD: &cost}}
	}
}

var continuingStories = map[string]story{
	"continues": {
		title: "a Run waits for the Run that it continues, to exist and to end",
		run:   continuesFirst,
		agent: gen.Durable,
		beats: []beat{
			at(10*second, "Run first is created", firstIs()),
			at(3*time.Hour, "Run first ends", firstIs(hasEndedWith(v1alpha1.ReasonFinished))),
			at(3*time.Hour+1*second, "x-1 runs", starts(1)),
			at(3*time.Hour+9*second, "the runner commits", reports(1, commits("Finished", ""))),
		},
	},
	"continues-nothing": {
		title: "the Run to continue is never created",
		run:   continuesFirst,
	},
	"continues-forgotten": {
		title: "the Run to continue kept no files",
		run:   continuesFirst,
		beats: []beat{at(0, "the Agent of Run first has durability Pod", func(c *cluster) {
			firstIs(hasEndedWith(v1alpha1.ReasonFinished))(c)
			c.source.Run.Status.Attempt.VolumeClaim = ""
		})},
	},
	"continues-lost": {
		title: "the files to copy are deleted while the pod waits for a node",
		run:   continuesFirst,
		beats: []beat{
			at(0, "Run first has ended", firstIs(hasEndedWith(v1alpha1.ReasonFinished))),
			at(1*second, "no node takes x-1", isUnschedulable(1)),
			at(60*second, "Run first is deleted, with its volume", func(c *cluster) { c.source = continuing.Source{} }),
		},
	},
	"continues-after-crash": {
		title: "a crash before anything is copied copies again; after a report the copy is there",
		run:   func(r *v1alpha1.Run) { continuesFirst(r); *r.Spec.MaxRetries = 3 },
		agent: gen.Durable,
		beats: []beat{
			at(0, "Run first has ended", firstIs(hasEndedWith(v1alpha1.ReasonFinished))),
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "x-1 exits 1", exits(1, 1)),
			at(20*second, "x-2 runs", starts(2)),
			at(21*second, "the runner reports", reports(2)),
			at(22*second, "Run first is deleted, with its volume", func(c *cluster) { c.source = continuing.Source{} }),
			at(23*second, "x-2 exits 1", exits(2, 1)),
			at(90*second, "x-3 runs", starts(3)),
			at(91*second, "the runner commits", reports(3, commits("Finished", ""))),
		},
	},
	"shares": {
		title: "a Run works on the files of another itself, after all others that use them; they stay until the last has ended",
		run:   sharesFirst,
		beats: []beat{
			at(0, "Run first has ended, and Run second works on its files", all(firstIs(hasEndedWith(v1alpha1.ReasonFinished)), func(c *cluster) {
				c.source.User = gen.Run(func(r *v1alpha1.Run) { r.Name = "second" })
				c.source.VolumeClaim.Annotations = map[string]string{v1alpha1.AnnotationRetention: "60m"}
			})),
			at(60*second, "Run second has ended, and pod third-1 copies its files", func(c *cluster) {
				c.source.User, c.source.Copier = nil, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "third-1"}}
			}),
			at(70*second, "pod third-1 has its copy", func(c *cluster) { c.source.Copier = nil }),
			at(80*second, "x-1 runs", starts(1)),
			at(90*second, "the runner commits", reports(1, commits("Finished", ""))),
			at(90*second, "Run fourth continues, on the same files", func(c *cluster) {
				c.use.Active = gen.Run(func(r *v1alpha1.Run) { r.Name = "fourth" })
			}),
			at(91*second, "x-1 exits 0", exits(1, 0)),
			at(6*60*second, "Run fourth ends", func(c *cluster) {
				c.use = continuing.Use{Last: gen.Run(hasEndedWith(v1alpha1.ReasonFinished), func(r *v1alpha1.Run) { at := metav1.NewTime(c.now); r.Status.CompletionTime = &at })}
			}),
		},
	},
	"shares-lost": {
		title: "the shared files are deleted, so nothing begins with an empty volume",
		run:   func(r *v1alpha1.Run) { sharesFirst(r); *r.Spec.MaxRetries = 3 },
		beats: []beat{
			at(0, "Run first has ended", firstIs(hasEndedWith(v1alpha1.ReasonFinished))),
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "the runner reports", reports(1)),
			at(3*second, "the volume is deleted", func(c *cluster) { c.claim, c.source = nil, continuing.Source{} }),
			at(4*second, "x-1 exits 1", exits(1, 1)),
		},
	},
	"kept-for-another": {
		title: "a Run and its files are kept beyond their time, while another Run has not copied them",
		run:   func(r *v1alpha1.Run) { ttl := int32(300); r.Spec.TTLSecondsAfterFinished = &ttl },
		agent: gen.Durable,
		beats: []beat{
			at(1*second, "x-1 runs", starts(1)),
			at(2*second, "another Run waits for this one", func(c *cluster) {
				c.isNeeded, c.claim = true, &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationRetention: "60s"}}}
			}),
			at(9*second, "the runner commits", reports(1, commits("Finished", ""))),
			at(10*second, "x-1 exits 0", exits(1, 0)),
			at(80*time.Minute, "the other Run has its copy", func(c *cluster) { c.isNeeded = false }),
		},
	},
}

func TestStoriesOfContinuing(t *testing.T) { playStories(t, continuingStories) }

// What a pod copies, and what the status says of it.
func TestAPodCopiesUntilARunnerHasReported(t *testing.T) {
	c := newCluster(t, gen.Run(continuesFirst), gen.Agent(gen.Durable))
	firstIs(hasEndedWith(v1alpha1.ReasonFinished))(c)
	c.source.Run.Status.ContinuedFrom = &v1alpha1.ContinuedFrom{Runs: []string{"zeroth"}, UID: "uid-zeroth", TotalTokens: 10, CostMicroUSD: new(int64)}
	c.begin()
	got := c.run.Status.ContinuedFrom
	if got == nil || !slices.Equal(got.Runs, []string{"first", "zeroth"}) || got.UID != "uid-first" || got.VolumeClaim != "deckhand-run-first-1234" || got.TotalTokens != 1010 || got.Cost != "0.25USD" {
		t.Errorf("status.continuedFrom is %+v", got)
	}
	pod := c.pods["x-1"]
	want := task.Continue{Run: "first", RunUID: "uid-first", Workspace: task.ContinueCopy}
	if told := runnerpod.TaskIn(pod).Continue; told == nil || told.Run != want.Run || told.RunUID != want.RunUID || told.Workspace != want.Workspace {
		t.Errorf("the task continues %+v", told)
	}
	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		at := slices.IndexFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool { return m.MountPath == task.SourceDir })
		if sees := at >= 0; sees != (container.Name == runnerpod.FetchContainer) || sees && !container.VolumeMounts[at].ReadOnly {
			t.Errorf("container %s sees the files of the other Run: %v", container.Name, sees)
		}
	}
	all(starts(1), reports(1), exits(1, 1))(c)
	for range 5 {
		c.now = c.now.Add(time.Minute)
		c.step()
	}
	second := c.pods["x-2"]
	if second == nil || runnerpod.TaskIn(second).Continue == nil {
		t.Fatalf("the second pod is %v", second)
	}
	if slices.ContainsFunc(second.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == "source" }) {
		t.Error("the second pod copies again")
	}
}

// A pod that copies from a volume in another zone waits for a node that reaches both volumes: the message names the
// volume, and what can be changed.
func TestAVolumeToCopyThatNoNodeReaches(t *testing.T) {
	const (
		conflict = "0/6 nodes are available: 3 Insufficient cpu, 3 node(s) didn't match PersistentVolume's node affinity"
		copied   = ". The pod copies from the volume of Run first, which this Run continues, and not every cluster node reaches that volume (PersistentVolumeClaim deckhand-run-first-1234). Free resources on the nodes that do, or let spec.podTemplate of the Agent select them"
		ownZone  = ". If this Run's own volume is in another zone, set spec.workspace.storageClassName of the Agent to a StorageClass with volumeBindingMode: WaitForFirstConsumer, and create a new Run"
		others   = ". Free resources on the cluster nodes, or change spec.podTemplate of the Agent"
	)
	for name, tc := range map[string]struct {
		run       func(*v1alpha1.Run)
		agent     func(*v1alpha1.Agent)
		scheduler string
		want      string
	}{
		"with a volume of its own":   {continuesFirst, gen.Durable, conflict, copied + ownZone},
		"without one":                {continuesFirst, func(*v1alpha1.Agent) {}, conflict, copied},
		"in words of older versions": {continuesFirst, gen.Durable, "0/1 nodes are available: 1 node(s) had volume node affinity conflict", copied + ownZone},
		"in words of the cloud":      {continuesFirst, gen.Durable, "0/1 nodes are available: 1 node(s) had no available volume zone", copied + ownZone},
		"on that volume":             {sharesFirst, gen.Durable, conflict, ". The pod works on the volume of Run first, which this Run continues, and not every cluster node reaches that volume (PersistentVolumeClaim deckhand-run-first-1234). Free resources on the nodes that do, or let spec.podTemplate of the Agent select them"},
		"another cause":              {continuesFirst, gen.Durable, "0/1 nodes are available: 1 Insufficient memory", others},
		"a Run that continues none":  {func(*v1alpha1.Run) {}, gen.Durable, conflict, others},
		"a Run without copied files": {func(r *v1alpha1.Run) { continuesFirst(r); r.Spec.ContinueFrom.Workspace = v1alpha1.ContinueFresh }, gen.Durable, conflict, copied + ownZone},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, gen.Run(tc.run), gen.Agent(tc.agent))
			if c.run.Spec.ContinueFrom != nil {
				firstIs(hasEndedWith(v1alpha1.ReasonModelUnavailable))(c)
			}
			c.begin()
			isUnschedulable(1)(c)
			c.pod(1).Status.Conditions[0].Message = tc.scheduler + "."
			c.step()
			if got, _, _ := strings.Cut(messageOf(c.run), ". Waits until "); reasonOf(c.run) != v1alpha1.ReasonUnschedulable || got != tc.scheduler+tc.want {
				t.Errorf("the Run is %s: %s\nwant %s", reasonOf(c.run), got, tc.scheduler+tc.want)
			}
		})
	}
}

// A Run that has its attempt waits with its pod, if others began with the same files at the same time.
func TestNoPodBesideOthersOnTheFiles(t *testing.T) {
	for name, tc := range map[string]struct {
		run  func(*v1alpha1.Run)
		also continuing.Source
	}{
		"a pod copies what it would change": {sharesFirst, continuing.Source{Copier: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "third-1"}}}},
		"a Run changes what it would copy":  {continuesFirst, continuing.Source{User: gen.Run(func(r *v1alpha1.Run) { r.Name = "second" })}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, gen.Run(tc.run), gen.Agent(gen.Durable))
			firstIs(hasEndedWith(v1alpha1.ReasonFinished))(c)
			c.step()
			c.source.Copier, c.source.User = tc.also.Copier, tc.also.User
			if p := decide(c.observed()); p.create != nil || p.reason != v1alpha1.ReasonQueued || p.wake == 0 || c.run.Status.Attempt == nil {
				t.Errorf("the plan is %+v", p)
			}
			c.source.Copier, c.source.User = nil, nil
			if p := decide(c.observed()); p.create == nil {
				t.Errorf("then the plan is %+v", p)
			}
		})
	}
}
