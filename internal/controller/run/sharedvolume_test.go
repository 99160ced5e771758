package run

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

func parentRun() *v1alpha1.Run {
	return gen.Run(func(r *v1alpha1.Run) {
		r.Name, r.UID, r.Spec.Agent, r.Spec.Workflow = "release", "parent-uid", "", "release"
	})
}

// partOfRelease makes a Run a child of that parent, with the files of the node
// build.
func partOfRelease(r *v1alpha1.Run) {
	r.Labels = map[string]string{v1alpha1.LabelWorkflowRun: "release", v1alpha1.LabelWorkflowNode: "test"}
	r.Annotations = map[string]string{v1alpha1.AnnotationVolumeClaim: runnerpod.SharedVolumeClaimName(parentRun(), "build")}
	r.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(parentRun(), v1alpha1.GroupVersion.WithKind("Run"))}
}

// A Run that shares a claim is durable, and does not free it.
func TestASharedClaimOutlivesItsRuns(t *testing.T) {
	c := newCluster(t, gen.Run(partOfRelease), gen.Agent(gen.Durable, func(a *v1alpha1.Agent) {
		a.Spec.Retention.KeepVolume, a.Spec.Retention.Volume = v1alpha1.KeepVolumeNever, nil
	}))
	c.begin()
	if !c.observed().durable() || c.run.Status.Attempt.VolumeClaim != runnerpod.SharedVolumeClaimName(parentRun(), "build") {
		t.Fatalf("durable %t, attempt %+v", c.observed().durable(), c.run.Status.Attempt)
	}
	starts(1)(c)
	reports(1, commits("Finished", ""))(c)
	exits(1, 0)(c)
	for range 10 {
		c.now = c.now.Add(hour)
		c.step()
	}
	if c.claim == nil {
		t.Error("the claim is gone")
	}
}

func TestASharedVolumeExpiresWithItsParent(t *testing.T) {
	s := state{now: gen.Noon, run: parentRun()}
	s.volume = &corev1.PersistentVolumeClaim{}
	s.volume.Annotations = map[string]string{v1alpha1.AnnotationRetain: "Never"}
	ended := metav1.NewTime(gen.Noon)
	s.run.Status.CompletionTime = &ended
	if done, _ := runnerpod.RetentionExpired(s.run, s.volume, gen.Noon); !done {
		t.Error("its parent has finished, and it stays")
	}
	s.volume.DeletionTimestamp = &ended
	if done, left := runnerpod.RetentionExpired(s.run, s.volume, gen.Noon); done || left != 0 {
		t.Errorf("one that goes: %t, %s", done, left)
	}
}

func TestOccupied(t *testing.T) {
	c := newCluster(t, gen.Run(partOfRelease), gen.Agent(gen.Durable))
	c.begin()
	claim := runnerpod.SharedVolumeClaimName(parentRun(), "build")
	if pods := []corev1.Pod{*c.pod(1)}; !runnerpod.InUse(claim, pods) || runnerpod.InUse("another", pods) || runnerpod.InUse(claim, nil) {
		t.Error("a pod that is there does not count, or another does")
	}
	starts(1)(c)
	exits(1, 0)(c)
	if runnerpod.InUse(claim, []corev1.Pod{*c.pod(1)}) {
		t.Error("a pod that has ended counts")
	}
}

// What others did on a volume that is gone is not begun again on an empty one.
func TestAClaimThatIsGoneAndThatOthersHadWorkedOn(t *testing.T) {
	c := newCluster(t, gen.Run(partOfRelease), gen.Agent(gen.Durable))
	c.step()
	s := c.observed()
	s.sharedFilesLost = true
	p := decide(s)
	if p.create != nil || p.reason != v1alpha1.ReasonPodLost || !strings.Contains(p.message, "that other Runs of the workflow had changed") {
		t.Errorf("the plan is %+v", p)
	}
}

// A shelf is an API server that holds a few Runs and at most one claim.
type shelf struct {
	client.Client
	runs  []v1alpha1.Run
	claim *corev1.PersistentVolumeClaim
}

func (s shelf) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	claim, is := into.(*corev1.PersistentVolumeClaim)
	if !is || s.claim == nil || s.claim.Name != key.Name {
		return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
	}
	s.claim.DeepCopyInto(claim)
	return nil
}

func (s shelf) List(_ context.Context, into client.ObjectList, opts ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(opts)
	list, is := into.(*v1alpha1.RunList)
	for _, run := range s.runs {
		if is && o.LabelSelector.Matches(labels.Set(run.Labels)) {
			list.Items = append(list.Items, run)
		}
	}
	return nil
}

// Whether a volume that is not there ever held anything, its other Runs know.
func TestWhatBecameOfASharedClaim(t *testing.T) {
	claim := runnerpod.SharedVolumeClaimName(parentRun(), "build")
	sibling := func(mods ...func(*v1alpha1.Run)) *v1alpha1.Run {
		mods = append([]func(*v1alpha1.Run){partOfRelease, func(r *v1alpha1.Run) {
			r.Name, r.UID = "release-build", "sibling-uid"
			r.Status.Attempt = &v1alpha1.Attempt{Number: 1, VolumeClaim: claim}
			r.Status.Progress = &v1alpha1.RunProgress{Effects: v1alpha1.EffectsBegun}
		}}, mods...)
		return gen.Run(mods...)
	}
	volume := func(owner *v1alpha1.Run) *corev1.PersistentVolumeClaim {
		c := &corev1.PersistentVolumeClaim{}
		c.Namespace, c.Name, c.UID = gen.Namespace, claim, "claim-uid"
		c.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, v1alpha1.GroupVersion.WithKind("Run"))}
		return c
	}
	leaving := func(owner *v1alpha1.Run) *corev1.PersistentVolumeClaim {
		c, now := volume(owner), metav1.NewTime(gen.Noon)
		c.DeletionTimestamp = &now
		return c
	}
	cases := map[string]struct {
		other           *v1alpha1.Run
		cached, live    *corev1.PersistentVolumeClaim
		filesLost, have bool
	}{
		"it is there":                          {sibling(), volume(parentRun()), volume(parentRun()), false, true},
		"it is another's":                      {sibling(func(r *v1alpha1.Run) { r.Status.Progress = nil }), volume(gen.Run()), volume(gen.Run()), false, false},
		"it is not there yet":                  {sibling(func(r *v1alpha1.Run) { r.Status = v1alpha1.RunStatus{} }), nil, nil, false, false},
		"it is gone, and nothing was done":     {sibling(func(r *v1alpha1.Run) { r.Status.Progress.Effects = "" }), nil, nil, false, false},
		"it is gone, and what was done too":    {sibling(), nil, nil, true, false},
		"it is gone, and another has its name": {sibling(), nil, volume(gen.Run()), true, false},
		"it is there, and the cache is late":   {sibling(), nil, volume(parentRun()), false, true},
		"it goes, and what was done too":       {sibling(), leaving(parentRun()), leaving(parentRun()), true, true},
		"what was done was on another claim": {sibling(func(r *v1alpha1.Run) {
			r.Annotations[v1alpha1.AnnotationVolumeClaim] = runnerpod.VolumeClaimPrefix + "x"
		}), nil, nil, false, false},
		"what was done was of another workflow": {sibling(func(r *v1alpha1.Run) { r.OwnerReferences[0].UID = "an earlier release" }), nil, nil, false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := New(shelf{runs: []v1alpha1.Run{*tc.other}, claim: tc.cached}, shelf{claim: tc.live}, nil, Options{})
			s := state{run: gen.Run(partOfRelease, func(r *v1alpha1.Run) { r.Status.Attempt = &v1alpha1.Attempt{Number: 1, VolumeClaim: claim} })}
			if err := r.volumes.observe(t.Context(), &s); err != nil {
				t.Fatal(err)
			}
			if s.sharedFilesLost != tc.filesLost || (s.volume != nil) != tc.have {
				t.Errorf("filesLost %t, claim %v", s.sharedFilesLost, s.volume)
			}
		})
	}
}

// Who was first decides what the claim is, and so where the pods of the others go.
func TestAClaimThatAnotherRunMadeMeanwhile(t *testing.T) {
	for name, tc := range map[string]struct {
		made corev1.PersistentVolumeAccessMode
		wait bool
	}{
		"in the same way":  {corev1.ReadWriteOnce, false},
		"in another way":   {corev1.ReadWriteMany, true},
		"for one pod only": {corev1.ReadWriteOncePod, true},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, gen.Run(partOfRelease), gen.Agent(gen.Durable))
			c.step()
			made := runnerpod.NewVolumeClaim(podInputOf(c.observed(), 1))
			made.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{tc.made}
			r := New(nil, shelf{claim: made}, nil, Options{})
			f, err := r.volumes.find(t.Context(), c.observed(), runnerpod.NewVolumeClaim(podInputOf(c.observed(), 1)))
			if err != nil || f.needDecision() != tc.wait {
				t.Errorf("the facts are %+v, error %v", f, err)
			}
		})
	}
}

// The cache may show late that a claim was created, and that it is gone is not
// believed of it.
func TestClaimThatTheCacheDoesNotShow(t *testing.T) {
	run := gen.Run(func(r *v1alpha1.Run) { r.Status.Attempt = &v1alpha1.Attempt{Number: 1, VolumeClaim: "c", PodUID: "1"} })
	claim := &corev1.PersistentVolumeClaim{}
	claim.Name, claim.OwnerReferences = "c", []metav1.OwnerReference{runnerpod.VolumeOwner(run)}
	for name, tc := range map[string]struct {
		live *corev1.PersistentVolumeClaim
		gone bool
	}{
		"it is there": {claim, false},
		"it is gone":  {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := state{run: run}
			if err := New(shelf{}, shelf{claim: tc.live}, nil, Options{}).volumes.observe(t.Context(), &s); err != nil || s.volumeDeleted() != tc.gone {
				t.Errorf("the claim is deleted: %t, error %v", s.volumeDeleted(), err)
			}
		})
	}
}

// A Run that has just joined a volume reads it from the API server, because the cache may not show its owner yet. It
// never makes one, and ends if the volume does not exist.
func TestAJoinedVolumeThatTheCacheDoesNotShow(t *testing.T) {
	run := gen.Run(sharesFirst, func(r *v1alpha1.Run) {
		r.Status.Attempt = &v1alpha1.Attempt{Number: 1, VolumeClaim: "deckhand-run-first-1234"}
		r.Status.ContinuedFrom = &v1alpha1.ContinuedFrom{Runs: []string{"first"}, UID: "uid-first", VolumeClaim: "deckhand-run-first-1234"}
	})
	before := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "deckhand-run-first-1234"}}
	joined := before.DeepCopy()
	joined.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Run", Name: run.Name, UID: run.UID}}
	for name, tc := range map[string]struct {
		live *corev1.PersistentVolumeClaim
		gone bool
	}{
		"it has joined":   {joined, false},
		"it never joined": {before, true},
		"it is gone":      {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := state{run: run}
			v := New(shelf{claim: before}, shelf{claim: tc.live}, nil, Options{}).volumes
			if err := v.observe(t.Context(), &s); err != nil || s.volumeDeleted() != tc.gone {
				t.Errorf("the claim is deleted: %t, error %v", s.volumeDeleted(), err)
			}
			if p, lost := volumeLost(s); lost != tc.gone || lost && p.reason != v1alpha1.ReasonNothingToContinue {
				t.Errorf("lost: %t, the plan is %+v", lost, p)
			}
			if f, err := v.create(t.Context(), s); err != nil || f.needDecision() { // a shelf refuses to create
				t.Errorf("it makes a volume: %+v, %v", f, err)
			}
		})
	}
}
