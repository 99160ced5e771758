package run

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/gen"
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
	r.Annotations = map[string]string{v1alpha1.AnnotationVolumeClaim: SharedClaim(parentRun(), "build")}
	r.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(parentRun(), v1alpha1.GroupVersion.WithKind("Run"))}
}

func TestSharedClaimNames(t *testing.T) {
	name := func(run string, uid types.UID, root string) string {
		return SharedClaim(gen.Run(func(r *v1alpha1.Run) { r.Name, r.UID = run, uid }), root)
	}
	long := strings.Repeat("long-", 12)
	for _, run := range []string{"x", "dotted.name", long + "xyz"} {
		if got := name(run, "1", strings.Repeat("n", 40)); len(got) > 63 || !strings.HasPrefix(got, claimPrefix) {
			t.Errorf("the claim of %s is called %s (%d characters)", run, got, len(got))
		}
	}
	all := []string{name("x", "1", "build"), name("x", "1", "docs"), name("x", "2", "build"), name(long, "1", "build"), claimName(gen.Run(func(r *v1alpha1.Run) { r.UID = "1" }))}
	slices.Sort(all)
	if n := len(slices.Compact(slices.Clone(all))); n != len(all) {
		t.Errorf("two have one claim: %v", all)
	}
	if again := name("x", "1", "build"); !slices.Contains(all, again) {
		t.Errorf("the name is another each time: %s", again)
	}
}

// What a Run says of a claim counts only where a Run made it say so.
func TestWhoSharesAClaim(t *testing.T) {
	cases := map[string]struct {
		mod  func(*v1alpha1.Run)
		want bool
	}{
		"a child of a Run":             {func(*v1alpha1.Run) {}, true},
		"one without the annotation":   {func(r *v1alpha1.Run) { r.Annotations = nil }, false},
		"one without an owner":         {func(r *v1alpha1.Run) { r.OwnerReferences = nil }, false},
		"one whose owner is no Run":    {func(r *v1alpha1.Run) { r.OwnerReferences[0].Kind = "Schedule" }, false},
		"one whose owner is foreign":   {func(r *v1alpha1.Run) { r.OwnerReferences[0].APIVersion = "deckhand.devil/v1" }, false},
		"one that is owned by the way": {func(r *v1alpha1.Run) { r.OwnerReferences[0].Controller = nil }, false},
		"one that names another claim": {func(r *v1alpha1.Run) { r.Annotations[v1alpha1.AnnotationVolumeClaim] = "data-postgres-0" }, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			run := gen.Run(partOfRelease, tc.mod)
			if got, _ := sharing(run); (got != "") != tc.want {
				t.Errorf("sharing() = %q", got)
			}
			own := claimNamed(run.Name, string(run.UID))
			if got := claimName(run); (got != own) != tc.want {
				t.Errorf("its claim is %s", got)
			}
		})
	}
}

// The whole claim and the whole pod, to be read.
func TestPodWithASharedWorkspace(t *testing.T) {
	c := newClusterOf(t, gen.Run(partOfRelease), gen.Agent(coder, durably), toolsets())
	c.step()
	claim, err := yaml.Marshal(newVolumeClaim(c.world().run, c.world().version))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", "claim-shared.yaml")
	if *update {
		if err := os.WriteFile(path, claim, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(claim)); diff != "" {
		t.Errorf("the claim (-want +got):\n%s", diff)
	}
	c.step()
	golden(t, "pod-shared.yaml", c.pod(1))
}

// No container but those of Deckhand sees the journal, and nobody that of another
// Run.
func TestFoldersOfASharedClaim(t *testing.T) {
	c := newClusterOf(t, gen.Run(partOfRelease), gen.Agent(coder, durably), toolsets())
	c.step()
	c.step()
	pod := c.pod(1)
	for _, one := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		folders := map[string]string{}
		for _, m := range one.VolumeMounts {
			if m.Name == claimVolume {
				folders[m.SubPath] = m.MountPath
			}
		}
		want := map[string]string{}
		switch {
		case one.Name == runnerContainer, one.Name == fetchContainer:
			want = map[string]string{"runs/run-uid/state": "/deckhand/state", "origin": "/deckhand/origin", "workspace": "/workspace"}
		case one.Name == sandboxContainer:
			want = map[string]string{"workspace": "/workspace", "home": "/home/agent", "tmp": "/tmp"}
		case len(folders) > 0:
			want = map[string]string{"workspace": "/workspace"}
		}
		if diff := cmp.Diff(want, folders); diff != "" {
			t.Errorf("container %s has folders of the claim (-want +got):\n%s", one.Name, diff)
		}
	}
}

// Pods are placed together where one machine alone may mount the volume.
func TestNeighbors(t *testing.T) {
	mode := func(m v1alpha1.AccessMode) func(*v1alpha1.Agent) {
		return func(a *v1alpha1.Agent) { durably(a); a.Spec.Workspace.AccessMode = m }
	}
	made := func(m corev1.PersistentVolumeAccessMode) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{m}}}
	}
	cases := map[string]struct {
		run   func(*v1alpha1.Run)
		agent func(*v1alpha1.Agent)
		claim *corev1.PersistentVolumeClaim
		want  bool
	}{
		"of a claim that is shared":                   {partOfRelease, durably, nil, true},
		"of an Agent without a claim of its own":      {partOfRelease, func(*v1alpha1.Agent) {}, nil, true},
		"not of one that is not":                      {func(*v1alpha1.Run) {}, durably, nil, false},
		"not where many machines may mount it":        {partOfRelease, mode("ReadWriteMany"), nil, false},
		"not where one pod alone may":                 {partOfRelease, mode("ReadWriteOncePod"), nil, false},
		"the claim decides, not the Agent, for one":   {partOfRelease, mode("ReadWriteMany"), made(corev1.ReadWriteOnce), true},
		"the claim decides, not the Agent, for many":  {partOfRelease, mode("ReadWriteOnce"), made(corev1.ReadWriteMany), false},
		"an empty pod template does not change a bit": {partOfRelease, func(a *v1alpha1.Agent) { durably(a); a.Spec.PodTemplate = &v1alpha1.PodTemplate{} }, nil, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, gen.Run(tc.run), gen.Agent(tc.agent))
			c.step()
			c.claim = tc.claim
			c.step()
			pod := c.pod(1)
			if got := pod.Spec.Affinity != nil; got != tc.want {
				t.Fatalf("affinity is %v", pod.Spec.Affinity)
			}
			if !tc.want {
				return
			}
			term := pod.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0]
			if term.TopologyKey != "kubernetes.io/hostname" || term.LabelSelector.MatchLabels[v1alpha1.LabelVolumeClaim] != pod.Labels[v1alpha1.LabelVolumeClaim] || pod.Labels[v1alpha1.LabelVolumeClaim] == "" {
				t.Errorf("%+v of a pod with the labels %v: it would wait for itself", term, pod.Labels)
			}
		})
	}
}

// A Run that shares a claim is durable, and does not free it.
func TestASharedClaimOutlivesItsRuns(t *testing.T) {
	c := newCluster(t, gen.Run(partOfRelease), gen.Agent(durably, func(a *v1alpha1.Agent) {
		a.Spec.Workspace.Retain, a.Spec.Workspace.Retention = v1alpha1.RetainNever, nil
	}))
	c.step()
	c.step()
	if !c.world().durable() || c.run.Status.Attempt.VolumeClaim != SharedClaim(parentRun(), "build") {
		t.Fatalf("durable %t, attempt %+v", c.world().durable(), c.run.Status.Attempt)
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

func TestOutlived(t *testing.T) {
	w := world{now: gen.Noon, run: parentRun()}
	w.claim = &corev1.PersistentVolumeClaim{}
	w.claim.Annotations = map[string]string{v1alpha1.AnnotationRetain: "Never"}
	ended := metav1.NewTime(gen.Noon)
	w.run.Status.CompletionTime = &ended
	if done, _ := RetentionExpired(w.run, w.claim, gen.Noon); !done {
		t.Error("its parent has finished, and it stays")
	}
	w.claim.DeletionTimestamp = &ended
	if done, left := RetentionExpired(w.run, w.claim, gen.Noon); done || left != 0 {
		t.Errorf("one that goes: %t, %s", done, left)
	}
}

func TestOccupied(t *testing.T) {
	c := newCluster(t, gen.Run(partOfRelease), gen.Agent(durably))
	c.step()
	c.step()
	claim := SharedClaim(parentRun(), "build")
	if pods := []corev1.Pod{*c.pod(1)}; !Occupied(claim, pods) || Occupied("another", pods) || Occupied(claim, nil) {
		t.Error("a pod that is there does not count, or another does")
	}
	starts(1)(c)
	exits(1, 0)(c)
	if Occupied(claim, []corev1.Pod{*c.pod(1)}) {
		t.Error("a pod that has ended counts")
	}
}

// What others did on a volume that is gone is not begun again on an empty one.
func TestAClaimThatIsGoneAndThatOthersHadWorkedOn(t *testing.T) {
	c := newCluster(t, gen.Run(partOfRelease), gen.Agent(durably))
	c.step()
	w := c.world()
	w.filesLost = true
	p := decide(w)
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
	claim := SharedClaim(parentRun(), "build")
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
		"it is there":                           {sibling(), volume(parentRun()), volume(parentRun()), false, true},
		"it is another's":                       {sibling(func(r *v1alpha1.Run) { r.Status.Progress = nil }), volume(gen.Run()), volume(gen.Run()), false, false},
		"it is not there yet":                   {sibling(func(r *v1alpha1.Run) { r.Status = v1alpha1.RunStatus{} }), nil, nil, false, false},
		"it is gone, and nothing was done":      {sibling(func(r *v1alpha1.Run) { r.Status.Progress.Effects = "" }), nil, nil, false, false},
		"it is gone, and what was done too":     {sibling(), nil, nil, true, false},
		"it is gone, and another has its name":  {sibling(), nil, volume(gen.Run()), true, false},
		"it is there, and the cache is late":    {sibling(), nil, volume(parentRun()), false, true},
		"it goes, and what was done too":        {sibling(), leaving(parentRun()), leaving(parentRun()), true, true},
		"what was done was on another claim":    {sibling(func(r *v1alpha1.Run) { r.Annotations[v1alpha1.AnnotationVolumeClaim] = claimPrefix + "x" }), nil, nil, false, false},
		"what was done was of another workflow": {sibling(func(r *v1alpha1.Run) { r.OwnerReferences[0].UID = "an earlier release" }), nil, nil, false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := New(shelf{runs: []v1alpha1.Run{*tc.other}, claim: tc.cached}, shelf{claim: tc.live}, nil, Options{})
			w := world{run: gen.Run(partOfRelease, func(r *v1alpha1.Run) { r.Status.Attempt = &v1alpha1.Attempt{Number: 1, VolumeClaim: claim} })}
			if err := r.volume(t.Context(), &w); err != nil {
				t.Fatal(err)
			}
			if w.filesLost != tc.filesLost || (w.claim != nil) != tc.have {
				t.Errorf("filesLost %t, claim %v", w.filesLost, w.claim)
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
			c := newCluster(t, gen.Run(partOfRelease), gen.Agent(durably))
			c.step()
			made := newVolumeClaim(c.world().run, c.world().version)
			made.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{tc.made}
			r := New(nil, shelf{claim: made}, nil, Options{})
			instead, err := r.takenClaim(t.Context(), c.world(), newVolumeClaim(c.world().run, c.world().version))
			if err != nil || (instead != nil) != tc.wait {
				t.Errorf("instead %+v, error %v", instead, err)
			}
		})
	}
}

// The cache may show late that a claim was created, and that it is gone is not
// believed of it.
func TestClaimThatTheCacheDoesNotShow(t *testing.T) {
	run := gen.Run(func(r *v1alpha1.Run) { r.Status.Attempt = &v1alpha1.Attempt{Number: 1, VolumeClaim: "c", PodUID: "1"} })
	claim := &corev1.PersistentVolumeClaim{}
	claim.Name, claim.OwnerReferences = "c", []metav1.OwnerReference{holder(run)}
	for name, tc := range map[string]struct {
		live *corev1.PersistentVolumeClaim
		gone bool
	}{
		"it is there": {claim, false},
		"it is gone":  {nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := world{run: run}
			if err := New(shelf{}, shelf{claim: tc.live}, nil, Options{}).volume(t.Context(), &w); err != nil || w.claimDeleted() != tc.gone {
				t.Errorf("the claim is deleted: %t, error %v", w.claimDeleted(), err)
			}
		})
	}
}
