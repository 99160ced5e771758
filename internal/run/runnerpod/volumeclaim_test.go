package runnerpod

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

func TestClaimNames(t *testing.T) {
	long := strings.Repeat("long-", 12)
	name := func(run string, uid types.UID) string {
		return VolumeClaimName(gen.Run(func(r *v1alpha1.Run) { r.Name, r.UID = run, uid }))
	}
	for _, run := range []string{"x", "dotted.name", long + "x", strings.Repeat("a", 253)} {
		got := name(run, "1")
		if len(got) > 63 || !strings.HasPrefix(got, VolumeClaimPrefix) {
			t.Errorf("the claim of %s is called %s (%d characters)", run, got, len(got))
		}
	}
	if name("x", "1") == name("x", "2") {
		t.Error("a Run shares the claim of its namesake")
	}
	if name(long+"x", "1") == name(long+"y", "2") {
		t.Error("two Runs share a claim")
	}
}

// The whole claim, to be read; and one whose Agent says all there is to say.
func TestClaim(t *testing.T) {
	for file, mod := range map[string]func(*v1alpha1.Agent){
		"claim.yaml": func(a *v1alpha1.Agent) { a.Spec.Workspace.Durability = v1alpha1.DurabilityVolume },
		"claim-of-class.yaml": func(a *v1alpha1.Agent) {
			gen.Durable(a)
			a.Spec.Workspace.AccessMode, a.Spec.Retention.KeepVolume = "ReadWriteMany", v1alpha1.KeepVolumeAlways
		},
	} {
		in := newInput(t, gen.Run(), gen.Agent(mod), gen.Objects())
		golden(t, file, NewVolumeClaim(in))
	}
}

func TestSharedClaimNames(t *testing.T) {
	name := func(run string, uid types.UID, root string) string {
		return SharedVolumeClaimName(gen.Run(func(r *v1alpha1.Run) { r.Name, r.UID = run, uid }), root)
	}
	long := strings.Repeat("long-", 12)
	for _, run := range []string{"x", "dotted.name", long + "xyz"} {
		if got := name(run, "1", strings.Repeat("n", 40)); len(got) > 63 || !strings.HasPrefix(got, VolumeClaimPrefix) {
			t.Errorf("the claim of %s is called %s (%d characters)", run, got, len(got))
		}
	}
	all := []string{name("x", "1", "build"), name("x", "1", "docs"), name("x", "2", "build"), name(long, "1", "build"), VolumeClaimName(gen.Run(func(r *v1alpha1.Run) { r.UID = "1" }))}
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
			if got, _ := SharedVolumeClaim(run); (got != "") != tc.want {
				t.Errorf("SharedVolumeClaim() = %q", got)
			}
			own := volumeClaimName(run.Name, string(run.UID))
			if got := VolumeClaimName(run); (got != own) != tc.want {
				t.Errorf("its claim is %s", got)
			}
		})
	}
}

// The whole claim and the whole pod, to be read.
func TestPodWithASharedWorkspace(t *testing.T) {
	in := newInput(t, gen.Run(partOfRelease), gen.Agent(gen.Coder, gen.Durable), gen.Toolsets())
	golden(t, "claim-shared.yaml", NewVolumeClaim(in))
	golden(t, "pod-shared.yaml", New(in))
}

// kubectl deckhand logs reads the events where the runner stores them.
func TestEventsFolderIsInTheStateOfTheRun(t *testing.T) {
	for _, run := range []*v1alpha1.Run{gen.Run(), gen.Run(partOfRelease)} {
		pod := New(newInput(t, run, gen.Agent(gen.Coder, gen.Durable), gen.Toolsets()))
		mounts := pod.Spec.Containers[0].VolumeMounts
		state := slices.IndexFunc(mounts, func(m corev1.VolumeMount) bool { return m.MountPath == task.StateDir })
		if want := mounts[state].SubPath + "/" + task.EventsFolder; EventsFolder(run) != want {
			t.Errorf("events are read in %s, want %s", EventsFolder(run), want)
		}
	}
}

// No container but those of Deckhand sees the journal, and nobody that of another
// Run.
func TestFoldersOfASharedClaim(t *testing.T) {
	pod := New(newInput(t, gen.Run(partOfRelease), gen.Agent(gen.Coder, gen.Durable), gen.Toolsets()))
	for _, one := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		folders := map[string]string{}
		for _, m := range one.VolumeMounts {
			if m.Name == volumeOfClaim {
				folders[m.SubPath] = m.MountPath
			}
		}
		want := map[string]string{}
		switch {
		case one.Name == RunnerContainer, one.Name == FetchContainer:
			want = map[string]string{"runs/run-uid/state": "/deckhand/state", "origin": "/deckhand/origin", "workspace": "/workspace"}
		case one.Name == SandboxContainer:
			want = map[string]string{"workspace": "/workspace", "home": "/home/agent", "tmp": "/tmp"}
		case len(folders) > 0:
			want = map[string]string{"workspace": "/workspace"}
		}
		if diff := cmp.Diff(want, folders); diff != "" {
			t.Errorf("container %s has folders of the claim (-want +got):\n%s", one.Name, diff)
		}
	}
}

// What the Agent wants of cluster nodes and what the volume needs both apply.
func TestAffinityOfTheAgent(t *testing.T) {
	own := &corev1.Affinity{
		NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "pool", Operator: corev1.NodeSelectorOpIn, Values: []string{"agents"}}},
		}}}},
		PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: "topology.kubernetes.io/zone"}}},
	}
	agent := gen.Agent(gen.Durable, func(a *v1alpha1.Agent) { a.Spec.PodTemplate = &v1alpha1.PodTemplate{Affinity: own} })
	for name, run := range map[string]*v1alpha1.Run{"a volume of its own": gen.Run(), "a shared volume": gen.Run(partOfRelease)} {
		t.Run(name, func(t *testing.T) {
			before := own.DeepCopy()
			pod := New(newInput(t, run, agent, gen.Objects()))
			want := own.DeepCopy()
			if claim := pod.Labels[v1alpha1.LabelVolumeClaim]; claim != "" {
				want.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution = append(want.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution, corev1.PodAffinityTerm{
					LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{v1alpha1.LabelVolumeClaim: claim}}, TopologyKey: "kubernetes.io/hostname",
				})
			} else if name == "a shared volume" {
				t.Fatal("the pod has no label of its volume")
			}
			if diff := cmp.Diff(want, pod.Spec.Affinity); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(before, own); diff != "" {
				t.Errorf("the template was changed:\n%s", diff)
			}
		})
	}
}

// Pods are placed together where one machine alone may mount the volume.
func TestNeighbors(t *testing.T) {
	mode := func(m v1alpha1.AccessMode) func(*v1alpha1.Agent) {
		return func(a *v1alpha1.Agent) { gen.Durable(a); a.Spec.Workspace.AccessMode = m }
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
		"of a claim that is shared":                   {partOfRelease, gen.Durable, nil, true},
		"of an Agent without a claim of its own":      {partOfRelease, func(*v1alpha1.Agent) {}, nil, true},
		"not of one that is not":                      {func(*v1alpha1.Run) {}, gen.Durable, nil, false},
		"not where many machines may mount it":        {partOfRelease, mode("ReadWriteMany"), nil, false},
		"not where one pod alone may":                 {partOfRelease, mode("ReadWriteOncePod"), nil, false},
		"the claim decides, not the Agent, for one":   {partOfRelease, mode("ReadWriteMany"), made(corev1.ReadWriteOnce), true},
		"the claim decides, not the Agent, for many":  {partOfRelease, mode("ReadWriteOnce"), made(corev1.ReadWriteMany), false},
		"an empty pod template does not change a bit": {partOfRelease, func(a *v1alpha1.Agent) { gen.Durable(a); a.Spec.PodTemplate = &v1alpha1.PodTemplate{} }, nil, true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			in := newInput(t, gen.Run(tc.run), gen.Agent(tc.agent), gen.Objects())
			in.VolumeClaim = tc.claim
			pod := New(in)
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

func parentRun() *v1alpha1.Run {
	return gen.Run(func(r *v1alpha1.Run) {
		r.Name, r.UID, r.Spec.Agent, r.Spec.Workflow = "release", "parent-uid", "", "release"
	})
}

// partOfRelease makes a Run a child of that parent, with the files of the node build.
func partOfRelease(r *v1alpha1.Run) {
	r.Labels = map[string]string{v1alpha1.LabelWorkflowRun: "release", v1alpha1.LabelWorkflowNode: "test"}
	r.Annotations = map[string]string{v1alpha1.AnnotationVolumeClaim: SharedVolumeClaimName(parentRun(), "build")}
	r.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(parentRun(), v1alpha1.GroupVersion.WithKind("Run"))}
}
