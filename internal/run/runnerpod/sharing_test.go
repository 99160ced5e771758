package runnerpod

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
	"github.com/deckhand-dev/deckhand/runner/task"
)

const claimOfFirst = "deckhand-run-first-12345678"

// sharesFirst makes a Run one that works on the files of the Run first, and has started.
func sharesFirst(r *v1alpha1.Run) {
	r.Spec.ContinueFrom = &v1alpha1.ContinueFrom{Run: "first", Workspace: v1alpha1.ContinueShare}
	r.Status.ContinuedFrom = &v1alpha1.ContinuedFrom{Runs: []string{"first"}, UID: "uid-first", VolumeClaim: claimOfFirst}
}

// joinedClaim is the volume of the Run first, which a Run has joined.
func joinedClaim(run *v1alpha1.Run) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: gen.Namespace, Name: claimOfFirst, UID: "uid-claim", ResourceVersion: "7",
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(&metav1.ObjectMeta{Name: "first", UID: "uid-first"}, v1alpha1.GroupVersion.WithKind("Run"))},
	}}
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("7Gi")}
	var patch struct{ Metadata metav1.ObjectMeta }
	if err := json.Unmarshal(Join(run, claim), &patch); err != nil {
		panic(err)
	}
	claim.OwnerReferences, claim.Annotations = patch.Metadata.OwnerReferences, patch.Metadata.Annotations
	return claim
}

// A Run may mount the volume that it made, or that its status names and the operator joined it to.
func TestWhoOwnsAVolume(t *testing.T) {
	type change struct {
		run   func(*v1alpha1.Run)
		claim func(*corev1.PersistentVolumeClaim)
	}
	own := func(c *corev1.PersistentVolumeClaim, change func(*metav1.OwnerReference)) {
		change(&c.OwnerReferences[1])
	}
	for name, tc := range map[string]struct {
		change
		want bool
	}{
		"it joined":                  {want: true},
		"the maker was deleted":      {change{claim: func(c *corev1.PersistentVolumeClaim) { c.OwnerReferences = c.OwnerReferences[1:] }}, true},
		"another joined after it":    {change{claim: func(c *corev1.PersistentVolumeClaim) { c.Annotations[v1alpha1.AnnotationUsedBy] = "other/uid" }}, true},
		"it did not join":            {change{claim: func(c *corev1.PersistentVolumeClaim) { c.OwnerReferences = c.OwnerReferences[:1] }}, false},
		"its status names no volume": {change{run: func(r *v1alpha1.Run) { r.Status.ContinuedFrom = nil }}, false},
		"its status names another":   {change{run: func(r *v1alpha1.Run) { r.Status.ContinuedFrom.VolumeClaim = "deckhand-run-other-1" }}, false},
		"a user made the volume": {change{
			func(r *v1alpha1.Run) { r.Status.ContinuedFrom.VolumeClaim = "data" },
			func(c *corev1.PersistentVolumeClaim) { c.Name = "data" },
		}, false},
		"a namesake of it joined": {change{claim: func(c *corev1.PersistentVolumeClaim) { own(c, func(o *metav1.OwnerReference) { o.UID = "other" }) }}, false},
		"another kind joined":     {change{claim: func(c *corev1.PersistentVolumeClaim) { own(c, func(o *metav1.OwnerReference) { o.Kind = "Schedule" }) }}, false},
		"a foreign Run joined": {change{claim: func(c *corev1.PersistentVolumeClaim) {
			own(c, func(o *metav1.OwnerReference) { o.APIVersion = "deckhand.devil/v1" })
		}}, false},
		"a Run that copies":         {change{run: func(r *v1alpha1.Run) { r.Spec.ContinueFrom.Workspace = v1alpha1.ContinueCopy }}, false},
		"a Run that continues none": {change{run: func(r *v1alpha1.Run) { r.Spec.ContinueFrom = nil }}, false},
	} {
		t.Run(name, func(t *testing.T) {
			run := gen.Run(sharesFirst)
			claim := joinedClaim(run)
			if tc.run != nil {
				tc.run(run)
			}
			if tc.claim != nil {
				tc.claim(claim)
			}
			if got := OwnsVolume(run, claim); got != tc.want {
				t.Errorf("it owns the volume: %v", got)
			}
		})
	}
}

// Joining names the version that was read, keeps all owners, controls nothing, and is done once.
func TestJoiningAVolume(t *testing.T) {
	run := gen.Run(sharesFirst)
	claim := joinedClaim(run)
	if patch := Join(run, claim); patch != nil {
		t.Errorf("it joins again: %s", patch)
	}
	if name, uid := UserOf(claim); name != run.Name || uid != run.UID {
		t.Errorf("the files are used by %s %s", name, uid)
	}
	if owners := Owners(claim); len(owners) != 2 || owners[0].UID != "uid-first" || owners[1].Controller != nil || owners[1].BlockOwnerDeletion != nil {
		t.Errorf("the owners are %+v", owners)
	}
	next := gen.Run(sharesFirst, func(r *v1alpha1.Run) { r.Name, r.UID = "next", "uid-next" })
	want := fmt.Sprintf(`{"metadata":{"annotations":{"deckhand.dev/used-by":"next/uid-next"},"ownerReferences":%s,"resourceVersion":"7","uid":"uid-claim"}}`,
		ToJSON(append(claim.OwnerReferences, metav1.OwnerReference{APIVersion: "deckhand.dev/v1alpha1", Kind: "Run", Name: "next", UID: "uid-next"})))
	if got := string(Join(next, claim)); got != want {
		t.Errorf("the patch is\n%s, want\n%s", got, want)
	}
}

// Only fetch and the runner see journals, fetch that of the source read-only, and a claim is one volume of the pod.
func TestPodOnTheFilesOfAnotherRun(t *testing.T) {
	run := gen.Run(sharesFirst)
	in := newInput(t, run, gen.Agent(gen.Coder), gen.Toolsets())
	run.Status.Attempt.VolumeClaim, in.VolumeClaim, in.Durable = VolumeClaimName(run), joinedClaim(run), true
	pod := New(in)
	golden(t, "pod-continued.yaml", pod)
	for _, one := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		folders := map[string]string{}
		for _, m := range one.VolumeMounts {
			if m.Name == volumeOfClaim {
				folders[m.SubPath] = fmt.Sprint(m.MountPath, m.ReadOnly)
			}
		}
		want := map[string]string{}
		switch {
		case one.Name == FetchContainer:
			want = map[string]string{"": task.SourceDir + "true", "runs/run-uid/state": "/deckhand/statefalse", "origin": "/deckhand/originfalse", "workspace": "/workspacefalse"}
		case one.Name == RunnerContainer:
			want = map[string]string{"runs/run-uid/state": "/deckhand/statefalse", "origin": "/deckhand/originfalse", "workspace": "/workspacefalse"}
		case one.Name == SandboxContainer:
			want = map[string]string{"workspace": "/workspacefalse", "home": "/home/agentfalse", "tmp": "/tmpfalse"}
		case len(folders) > 0:
			want = map[string]string{"workspace": "/workspacetrue"}
		}
		if diff := cmp.Diff(want, folders); diff != "" {
			t.Errorf("container %s has folders of the claim (-want +got):\n%s", one.Name, diff)
		}
	}
	claims := slices.DeleteFunc(slices.Clone(pod.Spec.Volumes), func(v corev1.Volume) bool { return v.PersistentVolumeClaim == nil })
	if len(claims) != 1 || claims[0].PersistentVolumeClaim.ClaimName != claimOfFirst || pod.Labels[v1alpha1.LabelVolumeClaim] != claimOfFirst {
		t.Errorf("the volumes are %+v, the labels %v", claims, pod.Labels)
	}
	if got, want := EventsFolder(run), "runs/run-uid/state/events"; got != want {
		t.Errorf("events are read in %s, want %s", got, want)
	}
	if size := newBuilder(in).size(); size.String() != "7Gi" {
		t.Errorf("its size is %s", size.String())
	}
}
