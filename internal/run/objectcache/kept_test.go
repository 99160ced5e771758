package objectcache_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/run/objectcache"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
)

// childOf makes a Run one of another Run.
func childOf(run *v1alpha1.Run) {
	yes := true
	run.OwnerReferences = []metav1.OwnerReference{{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Run", Name: "parent", UID: "parent", Controller: &yes}}
}

func keptRun(t *testing.T, run *v1alpha1.Run) *v1alpha1.Run {
	t.Helper()
	kept, err := objectcache.Run(run)
	if err != nil {
		t.Fatal(err)
	}
	return kept.(*v1alpha1.Run)
}

// Of a finished Run nobody reads what it was given, and what it did; the parent of a child Run reads
// its result.
func TestWhatIsKeptOfAFinishedRun(t *testing.T) {
	usage, completed := v1alpha1.Usage{TotalTokens: 7}, metav1.Unix(9, 0)
	result := &v1alpha1.Result{Reason: "Finished", Text: "done"}
	input := &runtime.RawExtension{Raw: []byte(`{"a":1}`)}
	for name, tc := range map[string]struct {
		give func(*v1alpha1.Run)
		want func(*v1alpha1.Run) // of the Run without what is given
	}{
		"the prompt":  {func(r *v1alpha1.Run) { r.Spec.Prompt = "Fix it." }, func(*v1alpha1.Run) {}},
		"the input":   {func(r *v1alpha1.Run) { r.Spec.Input = input }, func(*v1alpha1.Run) {}},
		"steps":       {func(r *v1alpha1.Run) { r.Status.Progress.Recent = []v1alpha1.RecentStep{{}} }, func(*v1alpha1.Run) {}},
		"a step":      {func(r *v1alpha1.Run) { r.Status.Progress.Step = &v1alpha1.CurrentStep{ID: "s2"} }, func(*v1alpha1.Run) {}},
		"confinement": {func(r *v1alpha1.Run) { r.Status.Progress.Confinement = &v1alpha1.Confinement{} }, func(*v1alpha1.Run) {}},
		"refused":     {func(r *v1alpha1.Run) { r.Status.Progress.Refused = &v1alpha1.Refused{} }, func(*v1alpha1.Run) {}},
		"the text":    {func(r *v1alpha1.Run) { r.Status.Progress.Result = result }, func(r *v1alpha1.Run) { r.Status.Progress.Result = &v1alpha1.Result{Reason: "Finished"} }},
		"the output":  {func(r *v1alpha1.Run) { r.Status.Progress.Result = &v1alpha1.Result{Output: "{}"} }, func(r *v1alpha1.Run) { r.Status.Progress.Result = &v1alpha1.Result{} }},
		"files":       {func(r *v1alpha1.Run) { r.Status.Progress.Result = &v1alpha1.Result{Files: []v1alpha1.File{{}}} }, func(r *v1alpha1.Run) { r.Status.Progress.Result = &v1alpha1.Result{} }},
		"no progress": {func(r *v1alpha1.Run) { r.Status.Progress, r.Spec.Prompt = nil, "Fix it." }, func(r *v1alpha1.Run) { r.Status.Progress = nil }},
		"the text of a child Run": {
			func(r *v1alpha1.Run) { childOf(r); r.Status.Progress.Result, r.Spec.Prompt = result, "Fix it." },
			func(r *v1alpha1.Run) { childOf(r); r.Status.Progress.Result = result },
		},
		"the prompt of a Workflow's Run": {
			func(r *v1alpha1.Run) {
				r.Spec.Agent, r.Spec.Workflow, r.Spec.Prompt, r.Spec.Input = "", "w", "Fix it.", input
			},
			func(r *v1alpha1.Run) {
				r.Spec.Agent, r.Spec.Workflow, r.Spec.Prompt, r.Spec.Input = "", "w", "Fix it.", input
			},
		},
		"the prompt of an active Run": {
			func(r *v1alpha1.Run) {
				r.Status.Conditions, r.Status.CompletionTime, r.Spec.Prompt, r.Status.Progress.Result = nil, nil, "Fix it.", result
			},
			func(r *v1alpha1.Run) {
				r.Status.Conditions, r.Status.CompletionTime, r.Spec.Prompt, r.Status.Progress.Result = nil, nil, "Fix it.", result
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			empty := func() *v1alpha1.Run {
				run := finished(metav1.ObjectMeta{Name: "fix", UID: "run", ResourceVersion: "7"})
				run.Status.CompletionTime = &completed
				run.Spec.Prompt = ""
				run.Status.Progress = &v1alpha1.RunProgress{Usage: usage}
				return run
			}
			run, want := empty(), empty()
			tc.give(run)
			tc.want(want)
			before := run.DeepCopy()
			kept := keptRun(t, run)
			if diff := cmp.Diff(want, kept); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if diff := cmp.Diff(before, run); diff != "" {
				t.Errorf("the object itself was changed -before +after:\n%s", diff)
			}
			if keptRun(t, kept) != kept {
				t.Error("what has nothing to drop is copied")
			}
		})
	}
}

// Each thing that is dropped of a Run's metadata is dropped where it stands alone.
func TestWhatIsDroppedOfTheMetadataOfARun(t *testing.T) {
	for name, m := range map[string]metav1.ObjectMeta{
		"managed fields": {ManagedFields: []metav1.ManagedFieldsEntry{{}}},
		"finalizers":     {Finalizers: []string{"example.com/a"}},
		"generateName":   {GenerateName: "a-"},
		"an annotation":  {Annotations: map[string]string{"example.com/a": "b"}},
	} {
		kept := keptRun(t, &v1alpha1.Run{ObjectMeta: m})
		if diff := cmp.Diff(&v1alpha1.Run{}, kept); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
	run := &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1alpha1.AnnotationPaused: strings.Repeat("x", 1024)}, Labels: map[string]string{"a": "b"}}}
	if keptRun(t, run) != run {
		t.Error("an annotation of 1,024 bytes that the operator reads is not kept")
	}
	run.Annotations[v1alpha1.AnnotationPaused] += "x"
	if kept := keptRun(t, run); len(kept.Annotations) != 0 {
		t.Errorf("kept are %v", kept.Annotations)
	}
}

func TestAnOwnerIsCutWhereItIsTooLong(t *testing.T) {
	text := func(n int) string { return strings.Repeat("x", n) }
	owner := func(apiVersion, kind, name, uid int) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: text(apiVersion), Kind: text(kind), Name: text(name), UID: types.UID(text(uid))}
	}
	most := owner(317, 63, 253, 64)
	for name, given := range map[string]metav1.OwnerReference{
		"all at their bounds": most, "the version": owner(318, 63, 253, 64), "the kind": owner(317, 64, 253, 64), "the name": owner(317, 63, 254, 64), "the UID": owner(317, 63, 253, 65),
	} {
		kept := keptRun(t, &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{given}}})
		if diff := cmp.Diff([]metav1.OwnerReference{most}, kept.OwnerReferences); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
	run := &v1alpha1.Run{}
	for range 16 {
		run.OwnerReferences = append(run.OwnerReferences, most)
	}
	if keptRun(t, run) != run {
		t.Error("16 owners at their bounds are copied")
	}
}

// runnerOf returns a runner pod with everything that the operator reads.
func runnerOf(phase corev1.PodPhase) *corev1.Pod {
	end := &corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error", Message: "lost", FinishedAt: metav1.Unix(9, 0)}
	long := end.DeepCopy()
	long.ContainerID, long.StartedAt, long.Signal = "containerd://a", metav1.Unix(5, 0), 9
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "fix-1", Labels: map[string]string{v1alpha1.LabelRun: "fix"}, Annotations: map[string]string{
			v1alpha1.AnnotationTask:      `{"version":1,"run":{"namespace":"team","name":"fix","uid":"run"},"attempt":1,"prompt":"Fix it.","snapshotHash":"abc"}`,
			v1alpha1.AnnotationRetention: "1h0m0s", v1alpha1.AnnotationSignals: "{}", v1alpha1.AnnotationEgress: "e", v1alpha1.AnnotationEgressClass: "c", "example.com/a": "b",
		}},
		Spec: corev1.PodSpec{
			ServiceAccountName: v1alpha1.RunnerServiceAccount, NodeName: "n", Containers: []corev1.Container{{Name: "runner"}},
			Volumes: []corev1.Volume{runnerpod.RevisionVolume("deckhand-revision"), {Name: "other"}},
		},
	}
	pod.Status = corev1.PodStatus{
		Phase: phase, Reason: "Evicted", Message: "low on memory", PodIP: "10.0.0.1",
		Conditions:            []corev1.PodCondition{{Type: corev1.PodReady}, {Type: corev1.PodScheduled, Reason: "Unschedulable"}, {Type: corev1.DisruptionTarget, Reason: "PreemptionByScheduler"}},
		InitContainerStatuses: []corev1.ContainerStatus{{Name: "files", Image: "i", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
		ContainerStatuses:     []corev1.ContainerStatus{{Name: "runner", Image: "i", ImageID: "d", RestartCount: 1, State: corev1.ContainerState{Terminated: long}}},
	}
	return pod
}

func TestWhatIsKeptOfARunnerPod(t *testing.T) {
	end := &corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error", Message: "lost", FinishedAt: metav1.Unix(9, 0)}
	want := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "fix-1", Labels: map[string]string{v1alpha1.LabelRun: "fix"}, Annotations: map[string]string{
			v1alpha1.AnnotationTask: reducedTask, v1alpha1.AnnotationRetention: "1h0m0s", v1alpha1.AnnotationSignals: "{}", v1alpha1.AnnotationEgress: "e", v1alpha1.AnnotationEgressClass: "c",
		}},
		Spec: corev1.PodSpec{ServiceAccountName: v1alpha1.RunnerServiceAccount, Volumes: []corev1.Volume{runnerpod.RevisionVolume("deckhand-revision")}},
		Status: corev1.PodStatus{
			Phase: corev1.PodFailed, Reason: "Evicted", Message: "low on memory",
			Conditions:            []corev1.PodCondition{{Type: corev1.DisruptionTarget, Reason: "PreemptionByScheduler"}},
			InitContainerStatuses: []corev1.ContainerStatus{{Name: "files", Image: "i", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
			ContainerStatuses:     []corev1.ContainerStatus{{Name: "runner", State: corev1.ContainerState{Terminated: end}}},
		},
	}
	kept, err := objectcache.Pod(runnerOf(corev1.PodFailed))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, kept); diff != "" {
		t.Errorf("a pod that has ended: -want +got:\n%s", diff)
	}
	pending := runnerOf(corev1.PodPending)
	pending.Status.ContainerStatuses, pending.Annotations[v1alpha1.AnnotationTask] = nil, ""
	kept, err = objectcache.Pod(pending)
	if err != nil {
		t.Fatal(err)
	}
	if got := kept.(*corev1.Pod); len(got.Status.Conditions) != 2 || got.Status.Conditions[0].Reason != "Unschedulable" {
		t.Errorf("the conditions of a pod that starts are %v", got.Status.Conditions)
	} else if _, has := got.Annotations[v1alpha1.AnnotationTask]; has {
		t.Error("a pod without a task has one")
	}
	if twice, _ := objectcache.Pod(kept); twice != kept {
		t.Error("what has nothing to drop is copied")
	}
	bare := runnerOf(corev1.PodPending)
	bare.Spec.Volumes = nil
	if kept, _ = objectcache.Pod(bare); kept.(*corev1.Pod).Spec.Volumes != nil {
		t.Error("a pod without a revision has one")
	}
}

// Labels and owner of an ended pod are dropped only if the Run tells all of them.
func TestLabelsOfAnEndedPodThatTheRunDoesNotTellAreKept(t *testing.T) {
	run := &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fix", UID: "run"}}
	genuine := func() *metav1.PartialObjectMetadata {
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Namespace: "team", Name: "fix-2", UID: "pod",
			Labels:          map[string]string{v1alpha1.LabelRun: "fix", v1alpha1.LabelAttempt: "2"},
			Annotations:     map[string]string{v1alpha1.AnnotationTask: `{"run":{"namespace":"team","name":"fix","uid":"run"},"attempt":2}`, "example.com/a": "b"},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(run, v1alpha1.GroupVersion.WithKind("Run"))},
		}}
	}
	for name, tc := range map[string]struct {
		change func(*metav1.PartialObjectMetadata)
		told   bool // by the Run
	}{
		"as the operator made it": {func(*metav1.PartialObjectMetadata) {}, true},
		"a second owner": {func(m *metav1.PartialObjectMetadata) {
			m.OwnerReferences = append(m.OwnerReferences, metav1.OwnerReference{UID: "x"})
		}, false},
		"another owner":          {func(m *metav1.PartialObjectMetadata) { m.OwnerReferences[0].UID = "x" }, false},
		"no controller":          {func(m *metav1.PartialObjectMetadata) { m.OwnerReferences[0].Controller = nil }, false},
		"another Run in a label": {func(m *metav1.PartialObjectMetadata) { m.Labels[v1alpha1.LabelRun] = "x" }, false},
		"another attempt":        {func(m *metav1.PartialObjectMetadata) { m.Labels[v1alpha1.LabelAttempt] = "1" }, false},
		"no task": {func(m *metav1.PartialObjectMetadata) {
			m.OwnerReferences[0].UID = ""
			m.Annotations[v1alpha1.AnnotationTask] = "{}"
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := genuine()
			tc.change(m)
			want := m.DeepCopy()
			kept := reduced(t, m)
			if told := kept.Labels == nil && kept.OwnerReferences == nil; told != tc.told {
				t.Errorf("kept are the labels %v and the owners %v", kept.Labels, kept.OwnerReferences)
			}
			pod := objectcache.PodFromMetadata(kept, run)
			if diff := cmp.Diff(want.Labels, pod.Labels); diff != "" {
				t.Errorf("labels -want +got:\n%s", diff)
			}
			if diff := cmp.Diff(want.OwnerReferences, pod.OwnerReferences); diff != "" {
				t.Errorf("owners -want +got:\n%s", diff)
			}
			if pod.Status.Phase != corev1.PodSucceeded || pod.Spec.ServiceAccountName != v1alpha1.RunnerServiceAccount || pod.UID != "pod" {
				t.Errorf("the pod is %+v", pod)
			}
		})
	}
	other := &v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "fix", UID: "later"}}
	if pod := objectcache.PodFromMetadata(reduced(t, genuine()), other); pod.Labels != nil || pod.OwnerReferences != nil || runnerpod.BelongsTo(pod, other) {
		t.Errorf("the pod of another Run has the labels %v and the owners %v", pod.Labels, pod.OwnerReferences)
	}
}

// Objects of other types pass as they are: client-go hands over what it could not watch, too.
func TestOtherObjectsPass(t *testing.T) {
	other := &corev1.Secret{}
	for name, transform := range map[string]func(any) (any, error){
		"Pod": objectcache.Pod, "EndedPod": objectcache.EndedPod, "Run": objectcache.Run, "Revision": objectcache.Revision, "VolumeClaim": objectcache.VolumeClaim,
		"NetworkPolicy": objectcache.NetworkPolicy, "IdentityOnly": objectcache.IdentityOnly, "Agent": objectcache.Agent,
		"Agent with a default": objectcache.AgentWith(v1alpha1.DurabilityVolume),
	} {
		if got, err := transform(other); err != nil || got != any(other) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestTheInputOfARunIsKeptUpToItsBound(t *testing.T) {
	run := &v1alpha1.Run{Spec: v1alpha1.RunSpec{Input: &runtime.RawExtension{Raw: []byte(`"` + strings.Repeat("x", snapshot.MaxInput-2) + `"`)}}}
	if keptRun(t, run) != run {
		t.Error("an input of the bound is copied")
	}
}

func TestWhatIsKeptOfAVolumeClaim(t *testing.T) {
	yes := true
	modes := []corev1.PersistentVolumeAccessMode{"a", "b", "c", "d", "e"}
	owners := []metav1.OwnerReference{{APIVersion: "deckhand.dev/v1alpha1", Kind: "Run", Name: "fix", UID: "run", Controller: &yes}}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: "deckhand-run-fix", UID: "claim", OwnerReferences: owners, Labels: map[string]string{v1alpha1.LabelRun: "fix", "a": "b"},
			Annotations: map[string]string{v1alpha1.AnnotationRetain: "true", v1alpha1.AnnotationRetention: "1h", v1alpha1.AnnotationUsedBy: "next/uid", "a": "b"},
		},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: modes, VolumeName: "pv", Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("7Gi"), "other": resource.MustParse("1")},
		}},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, AccessModes: modes},
	}
	kept, err := objectcache.VolumeClaim(claim)
	want := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{
			Name: "deckhand-run-fix", UID: "claim", OwnerReferences: owners, Labels: map[string]string{v1alpha1.LabelRun: "fix"},
			Annotations: map[string]string{v1alpha1.AnnotationRetain: "true", v1alpha1.AnnotationRetention: "1h", v1alpha1.AnnotationUsedBy: "next/uid"},
		},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: modes[:4], Resources: corev1.VolumeResourceRequirements{
			Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("7Gi")},
		}},
		Status: corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	}
	if diff := cmp.Diff(want, kept); err != nil || diff != "" {
		t.Errorf("%v -want +got:\n%s", err, diff)
	}
}
