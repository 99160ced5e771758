package objectcache_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/revision/specsize"
	"github.com/deckhand-dev/deckhand/internal/run/objectcache"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/runner/task"
)

var long = strings.Repeat("x", 100<<10)

// large returns metadata with as much as the API server lets through, of every part, with the
// operator's own labels and annotations among it.
func large(name string) metav1.ObjectMeta {
	yes := true
	m := metav1.ObjectMeta{
		Namespace: "team", Name: name, UID: "uid", ResourceVersion: "7", GenerateName: long,
		Labels: map[string]string{}, Annotations: map[string]string{"example.com/note": long, corev1.LastAppliedConfigAnnotation: long},
		Finalizers:    slices.Repeat([]string{"example.com/" + strings.Repeat("f", 200)}, 1000),
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubectl", FieldsV1: metav1.NewFieldsV1(`"` + long + `"`)}},
	}
	for _, prefix := range []string{"example.com/", "argocd.argoproj.io/", "velero.io/"} {
		for i := range 1000 {
			m.Labels[fmt.Sprintf("%s%s%04d", prefix, strings.Repeat("l", 50), i)] = strings.Repeat("v", 63)
			m.Annotations[fmt.Sprintf("%s%s%04d", prefix, strings.Repeat("a", 50), i)] = "true"
		}
	}
	for _, k := range []string{
		v1alpha1.AnnotationRevisionHash, v1alpha1.AnnotationRequiredRevisions, v1alpha1.AnnotationVolumeClaim, v1alpha1.AnnotationDigest,
		v1alpha1.AnnotationRootRun, v1alpha1.AnnotationPaused, v1alpha1.AnnotationScheduledAt, v1alpha1.AnnotationTask,
		v1alpha1.AnnotationEgress, v1alpha1.AnnotationEgressClass, v1alpha1.AnnotationRetention, v1alpha1.AnnotationRetain, v1alpha1.AnnotationFilesPod, v1alpha1.AnnotationSignals,
	} {
		m.Annotations[k] = long
	}
	for _, k := range []string{v1alpha1.LabelRun, v1alpha1.LabelRevision, v1alpha1.LabelWorkflow, v1alpha1.LabelEgress, v1alpha1.LabelParentRun} {
		m.Labels[k] = "mine"
	}
	for i := range 1000 {
		m.OwnerReferences = append(m.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: fmt.Sprintf("n%d", i), UID: "other"})
	}
	m.OwnerReferences[0].Name = long
	m.OwnerReferences = append(m.OwnerReferences,
		metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Run", Name: "fix", UID: "run"},
		metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Run", Name: "fix", UID: "controller", Controller: &yes})
	return m
}

// required returns n hashes of revisions.
func required(n int) string {
	return strings.Join(slices.Repeat([]string{task.Hash(nil)}, n), ",")
}

// A largest object is kept with so many bytes of JSON at most.
type largest struct {
	object    any
	transform func(any) (any, error)
	most      int
}

func largestObjects() map[string]largest {
	const most = 20 << 10 // most of it are 16 owners with long names
	hash := task.Hash([]byte("a"))
	revision := large(snapshot.Name(hash))
	revision.Annotations = map[string]string{v1alpha1.AnnotationRevisionHash: hash, v1alpha1.AnnotationRequiredRevisions: required(80), "a": long}
	pod := &corev1.Pod{ObjectMeta: large("pod")}
	policy := &networkingv1.NetworkPolicy{ObjectMeta: large("policy")}
	binding := &rbacv1.RoleBinding{ObjectMeta: large("binding")}
	account := &corev1.ServiceAccount{ObjectMeta: large("account")}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: large("claim")}
	claim.Spec.Selector = &metav1.LabelSelector{MatchLabels: claim.Labels}
	for i := range 1000 {
		name := fmt.Sprintf("%s%d", runnerpod.VolumeClaimPrefix, i)
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}})
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: name, Image: long})
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{Name: name, Image: long})
		if i < 3 {
			policy.Spec.Egress = append(policy.Spec.Egress, networkingv1.NetworkPolicyEgressRule{To: []networkingv1.NetworkPolicyPeer{{PodSelector: claim.Spec.Selector}}})
		}
		binding.Subjects = append(binding.Subjects, rbacv1.Subject{Kind: "User", Name: long})
		account.Secrets = append(account.Secrets, corev1.ObjectReference{Name: long})
	}
	data := map[string]string{"runner.json": long}
	return map[string]largest{
		"a ConfigMap with a label of revisions": {&corev1.ConfigMap{ObjectMeta: large("mine"), Data: data, BinaryData: map[string][]byte{"a": []byte(long)}}, objectcache.Revision, 1 << 10},
		"a ConfigMap with the name of a revision": {
			&corev1.ConfigMap{ObjectMeta: revision, Data: data}, objectcache.Revision, 8 << 10,
		},
		"the metadata of a ConfigMap": {&metav1.PartialObjectMetadata{ObjectMeta: revision}, objectcache.Revision, 8 << 10},
		"a Pod":                       {pod, objectcache.Pod, most},
		"a PersistentVolumeClaim":     {claim, objectcache.VolumeClaim, most},
		"a NetworkPolicy":             {policy, objectcache.NetworkPolicy, 1 << 10},
		"a RoleBinding":               {binding, objectcache.IdentityOnly, 1 << 10},
		"a ServiceAccount":            {account, objectcache.IdentityOnly, 1 << 10},
		"the metadata of a binding":   {&metav1.PartialObjectMetadata{ObjectMeta: large("binding")}, objectcache.IdentityOnly, 1 << 10},
		"an Agent":                    {&v1alpha1.Agent{ObjectMeta: large("a")}, objectcache.Agent, most},
		"an Agent with a large spec": {
			&v1alpha1.Agent{ObjectMeta: large("a"), Spec: v1alpha1.AgentSpec{Inference: &v1alpha1.Inference{Extra: &runtime.RawExtension{Raw: []byte(`"` + strings.Repeat("x", specsize.Max) + `"`)}}}},
			objectcache.Agent, most,
		},
		"an Agent with a spec that is just kept": {
			&v1alpha1.Agent{ObjectMeta: large("a"), Spec: v1alpha1.AgentSpec{Inference: &v1alpha1.Inference{Extra: &runtime.RawExtension{Raw: []byte(`"` + strings.Repeat("x", specsize.Max-1024) + `"`)}}}},
			objectcache.Agent, most + specsize.Max,
		},
		"a Decision": {&v1alpha1.Decision{ObjectMeta: large("a")}, objectcache.Decision, most},
		"a Run":      {&v1alpha1.Run{ObjectMeta: large("a")}, objectcache.Run, most + 80*(253+1+63+63)},
		"a Run with a large input": {
			&v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: v1alpha1.RunSpec{Input: &runtime.RawExtension{Raw: []byte(`{"a":"` + long + `"}`)}}}, objectcache.Run, 20 << 10,
		},
		"a finished Run": {finished(large("a")), objectcache.Run, most + 80*(253+1+63+63)},
	}
}

// Users may write every kind that is cached, with labels of the operator: what is kept is bounded.
func TestTheLargestObjectIsKeptInPart(t *testing.T) {
	for name, tc := range largestObjects() {
		t.Run(name, func(t *testing.T) {
			kept, err := tc.transform(tc.object)
			if err != nil {
				t.Fatal(err)
			}
			text, err := json.Marshal(kept)
			if err != nil {
				t.Fatal(err)
			}
			if len(text) > tc.most {
				t.Errorf("%d bytes are kept, want at most %d", len(text), tc.most)
			}
			was, is := tc.object.(metav1.Object), kept.(metav1.Object)
			if was.GetUID() != is.GetUID() || was.GetName() != is.GetName() || was.GetResourceVersion() != is.GetResourceVersion() {
				t.Errorf("what is kept is another object: %s", is.GetName())
			}
			if twice, err := tc.transform(kept); err != nil || !cmp.Equal(kept, twice) {
				t.Errorf("a second time, %v -once +twice:\n%s", err, cmp.Diff(kept, twice))
			}
		})
	}
}

func finished(m metav1.ObjectMeta) *v1alpha1.Run {
	run := &v1alpha1.Run{ObjectMeta: m, Spec: v1alpha1.RunSpec{Agent: "fixer", Prompt: long}}
	now := metav1.Now()
	run.Status.CompletionTime = &now
	run.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionSucceeded, Status: metav1.ConditionTrue, Reason: "Finished"}}
	return run
}

func TestWhatIsKeptOfARevision(t *testing.T) {
	hash := task.Hash([]byte("a"))
	genuine := map[string]string{v1alpha1.AnnotationRevisionHash: hash, v1alpha1.AnnotationRequiredRevisions: required(80)}
	with := func(key, value string) map[string]string {
		out := maps.Clone(genuine)
		out[key] = value
		return out
	}
	only := map[string]string{v1alpha1.AnnotationRevisionHash: hash}
	cases := map[string]struct {
		name              string
		annotations, want map[string]string
	}{
		"what the operator writes":             {snapshot.Name(hash), genuine, genuine},
		"a revision of an Agent":               {snapshot.Name(hash), only, only},
		"foreign annotations":                  {snapshot.Name(hash), with("example.com/a", "b"), genuine},
		"a hash that the name does not have":   {snapshot.Name(task.Hash(nil)), genuine, nil},
		"a hash that is too long":              {snapshot.Name(hash), with(v1alpha1.AnnotationRevisionHash, hash+"0"), nil},
		"a hash of other characters":           {"deckhand-" + strings.Repeat("z", 32), with(v1alpha1.AnnotationRevisionHash, strings.Repeat("z", 64)), nil},
		"more revisions than a Workflow needs": {snapshot.Name(hash), with(v1alpha1.AnnotationRequiredRevisions, required(82)), only},
		"required revisions that are no hash":  {snapshot.Name(hash), with(v1alpha1.AnnotationRequiredRevisions, required(2)+","), only},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			labels := map[string]string{v1alpha1.LabelRevision: "true", v1alpha1.LabelAgent: "fixer", v1alpha1.LabelWorkflow: "release"}
			m := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: tc.name, Labels: labels, Annotations: tc.annotations}}
			kept, err := objectcache.Revision(&m)
			if err != nil {
				t.Fatal(err)
			}
			got := kept.(*metav1.PartialObjectMetadata)
			if diff := cmp.Diff(tc.want, got.Annotations); diff != "" {
				t.Errorf("annotations -want +got:\n%s", diff)
			}
			if diff := cmp.Diff(labels, got.Labels); diff != "" { // the operator deletes it with those of the Agent
				t.Errorf("labels -want +got:\n%s", diff)
			}
		})
	}
}

// A Run that a backup tool or a GitOps tool marks stays marked, among however many annotations.
func TestMarksOfARunAreKept(t *testing.T) {
	cases := map[string]struct {
		labels, annotations map[string]string
		restored, tracked   bool
	}{
		"both marks":               {nil, map[string]string{"argocd.argoproj.io/tracking-id": "", "stork.libopenstorage.org/migrated": long}, true, true},
		"a mark of a backup":       {nil, map[string]string{"stork.libopenstorage.org/migrated": "yes", "stork.libopenstorage.org/a": "b"}, true, false},
		"a mark without its value": {nil, map[string]string{"stork.libopenstorage.org/migrated": ""}, false, false},
		"a label of a backup":      {manyLabels("velero.io/restore-name"), nil, true, false},
		"a label of a GitOps tool": {manyLabels("kustomize.toolkit.fluxcd.io/name"), nil, false, true},
		"a label among those of tools": {maps.Collect(func(yield func(string, string) bool) {
			for i := range 100 {
				if !yield(fmt.Sprintf("argocd.argoproj.io/%d", i), "a") || !yield(fmt.Sprintf("deckhand.dev/%d", i), "a") || !yield(fmt.Sprintf("velero.io/a%d", i), "a") {
					return
				}
			}
			yield("velero.io/restore-name", "monday")
		}), nil, true, false},
		"neither":                   {manyLabels("example.com/zone"), map[string]string{"velero.io/a": "b"}, false, false},
		"an annotation of Velero's": {nil, map[string]string{"velero.io/restore-name": "a"}, false, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			kept, err := objectcache.Run(&v1alpha1.Run{ObjectMeta: metav1.ObjectMeta{Labels: tc.labels, Annotations: tc.annotations}})
			if err != nil {
				t.Fatal(err)
			}
			run := kept.(*v1alpha1.Run)
			if got := runstatus.RestoreMark(run) != ""; got != tc.restored {
				t.Errorf("it is restored: %t", got)
			}
			if got := runstatus.TrackingKey(run) != ""; got != tc.tracked {
				t.Errorf("a GitOps tool tracks it: %t", got)
			}
		})
	}
}

// manyLabels are more labels than are kept, with one that sorts behind them.
func manyLabels(last string) map[string]string {
	out := map[string]string{last: "mine"}
	for i := range 100 {
		out[fmt.Sprintf("a%d", i)] = "b"
	}
	return out
}

// The controller decides what belongs to a Run; the operator adds itself as an owner of Decisions,
// and must know whether there are others.
func TestTheOwnersThatCountAreKept(t *testing.T) {
	all := large("a").OwnerReferences
	kept, err := objectcache.Decision(&v1alpha1.Decision{ObjectMeta: metav1.ObjectMeta{OwnerReferences: all}})
	if err != nil {
		t.Fatal(err)
	}
	got := kept.(client.Object)
	if c := metav1.GetControllerOf(got); c == nil || c.UID != "controller" {
		t.Errorf("the controller is %v", c)
	}
	if owners := got.GetOwnerReferences(); len(owners) != 16 || owners[1].UID != "run" {
		t.Errorf("the owners are %v", owners)
	}
	for i := range all {
		all[i] = metav1.OwnerReference{APIVersion: v1alpha1.GroupVersion.String(), Kind: "Run", Name: fmt.Sprintf("n%d", i), UID: types.UID(fmt.Sprint(i))}
	}
	kept, _ = objectcache.Decision(&v1alpha1.Decision{ObjectMeta: metav1.ObjectMeta{OwnerReferences: all}})
	if diff := cmp.Diff(all[:16], kept.(client.Object).GetOwnerReferences()); diff != "" {
		t.Errorf("owners of the same kind -want +got:\n%s", diff)
	}
	one := []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: types.UID(long)}}
	kept, _ = objectcache.Decision(&v1alpha1.Decision{ObjectMeta: metav1.ObjectMeta{OwnerReferences: one}})
	if owners := kept.(client.Object).GetOwnerReferences(); len(owners) != 1 || len(owners[0].UID) > 64 {
		t.Errorf("the owners are %v", owners)
	}
	if len(one[0].UID) != len(long) {
		t.Error("the object itself was changed")
	}
}

// Only runner pods have annotations and states that decisions depend on; the volumes of Runs
// that a user's pod mounts are in use too.
func TestWhatIsKeptOfAUsersPod(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelRun: "fix"}, Annotations: map[string]string{v1alpha1.AnnotationTask: "{}", v1alpha1.AnnotationSignals: "{}"}},
		Spec: corev1.PodSpec{ServiceAccountName: "default", Containers: []corev1.Container{{Name: "a"}}, Volumes: []corev1.Volume{
			{Name: "other", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "mine"}}},
			{Name: "files", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "deckhand-run-fix", ReadOnly: true}}},
			runnerpod.RevisionVolume("deckhand-revision"),
		}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Message: long},
	}
	kept, err := objectcache.Pod(pod)
	if err != nil {
		t.Fatal(err)
	}
	got := kept.(*corev1.Pod)
	want := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{v1alpha1.LabelRun: "fix"}},
		Spec:       corev1.PodSpec{ServiceAccountName: "default", Volumes: pod.Spec.Volumes[1:2]},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if !runnerpod.InUse("deckhand-run-fix", []corev1.Pod{*got}) {
		t.Error("the volume of the Run is not in use")
	}
}

// An input that is too long ends its Run with the same message as before.
func TestAnInputThatIsTooLongIsKeptAsTooLong(t *testing.T) {
	for _, length := range []int{snapshot.MaxInput - len(`{"a":""}`), snapshot.MaxInput - len(`{"a":""}`) + 1, 1 << 20} {
		run := &v1alpha1.Run{Spec: v1alpha1.RunSpec{Input: &runtime.RawExtension{Raw: []byte(`{"a":"` + strings.Repeat("a", length) + `"}`)}}}
		kept, err := objectcache.Run(run)
		if err != nil {
			t.Fatal(err)
		}
		is := kept.(*v1alpha1.Run)
		if diff := cmp.Diff(snapshot.CheckInputSize(run.Spec), snapshot.CheckInputSize(is.Spec)); diff != "" {
			t.Errorf("%d bytes: -want +got:\n%s", length, diff)
		}
		if text, err := json.Marshal(is); err != nil || len(text) > 20<<10 {
			t.Errorf("%d bytes: kept are %d, %v", length, len(text), err)
		}
	}
}
