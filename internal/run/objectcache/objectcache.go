package objectcache

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/revision/snapshot"
	"github.com/deckhand-dev/deckhand/internal/run/children"
	"github.com/deckhand-dev/deckhand/internal/run/egress"
	"github.com/deckhand-dev/deckhand/internal/run/runnerpod"
	"github.com/deckhand-dev/deckhand/internal/run/runstatus"
	"github.com/deckhand-dev/deckhand/runner/task"
)

// maxVolumes is how many volumes of Runs are kept of a pod; the operator mounts one.
const maxVolumes = 16

// Pod returns what the cache keeps of a Pod: little more than metadata and the states of its containers. The controller
// reads the rest of the current pod from the API server.
func Pod(o any) (any, error) {
	pod, is := o.(*corev1.Pod)
	if !is {
		return o, nil
	}
	if pod.Spec.Containers == nil {
		return pod, nil // client-go transforms a listed object twice
	}
	kept := &corev1.Pod{
		ObjectMeta: reducedMeta(&pod.ObjectMeta),
		Spec:       corev1.PodSpec{ServiceAccountName: pod.Spec.ServiceAccountName, Volumes: volumesOfRuns(pod)},
		Status:     corev1.PodStatus{Phase: pod.Status.Phase},
	}
	if pod.Spec.ServiceAccountName == v1alpha1.RunnerServiceAccount {
		keepRunner(kept, pod)
	}
	return kept, nil
}

// volumesOfRuns returns the volumes of a pod that are volumes of Runs. A user's pod can have them
// too, which keeps them from being deleted.
func volumesOfRuns(pod *corev1.Pod) []corev1.Volume {
	var out []corev1.Volume
	for _, v := range pod.Spec.Volumes {
		if c := v.PersistentVolumeClaim; c != nil && strings.HasPrefix(c.ClaimName, runnerpod.VolumeClaimPrefix) && len(out) < maxVolumes {
			out = append(out, v)
		}
	}
	return out
}

// keepRunner adds further fields of a runner pod. An admission policy reserves its ServiceAccount for the operator, so
// no user can write these fields.
func keepRunner(kept, pod *corev1.Pod) {
	kept.Annotations = signed(pod)
	if name := runnerpod.RevisionName(pod); name != "" {
		kept.Spec.Volumes = append(kept.Spec.Volumes, runnerpod.RevisionVolume(name))
	}
	kept.Status.Reason, kept.Status.Message = pod.Status.Reason, pod.Status.Message
	kept.Status.InitContainerStatuses = reducedStatuses(pod.Status.InitContainerStatuses)
	kept.Status.ContainerStatuses = reducedStatuses(pod.Status.ContainerStatuses)
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.DisruptionTarget || c.Type == corev1.PodScheduled && runnerpod.IsAlive(pod) {
			kept.Status.Conditions = append(kept.Status.Conditions, c)
		}
	}
}

// signed returns the annotations of a runner pod that are read. Only the operator writes them.
func signed(pod *corev1.Pod) map[string]string {
	out := map[string]string{}
	for _, k := range []string{v1alpha1.AnnotationRetention, v1alpha1.AnnotationSignals, v1alpha1.AnnotationEgress, v1alpha1.AnnotationEgressClass} {
		if v, has := pod.Annotations[k]; has {
			out[k] = v
		}
	}
	if pod.Annotations[v1alpha1.AnnotationTask] != "" {
		t := runnerpod.TaskIn(pod)
		out[v1alpha1.AnnotationTask] = string(runnerpod.ToJSON(task.Task{Run: t.Run, Attempt: t.Attempt, Meter: t.Meter}))
	}
	return out
}

// reducedMeta returns metadata of a pod with the labels and owners that are read.
func reducedMeta(m *metav1.ObjectMeta) metav1.ObjectMeta {
	kept := identity(m)
	kept.Labels = chosen(m.Labels, v1alpha1.LabelRun, v1alpha1.LabelAttempt, v1alpha1.LabelVolumeClaim, v1alpha1.LabelEgress)
	kept.OwnerReferences = reducedOwners(m.OwnerReferences)
	return kept
}

// reducedStatuses returns the states of containers, with the exit code and message of ended ones.
func reducedStatuses(all []corev1.ContainerStatus) []corev1.ContainerStatus {
	var out []corev1.ContainerStatus
	for _, container := range all {
		kept := corev1.ContainerStatus{Name: container.Name, Image: container.Image, State: container.State}
		if end := container.State.Terminated; end != nil {
			kept.Image, kept.State.Terminated = "", &corev1.ContainerStateTerminated{ExitCode: end.ExitCode, Reason: end.Reason, Message: end.Message, FinishedAt: end.FinishedAt}
		}
		out = append(out, kept)
	}
	return out
}

// Run returns what the cache keeps of a Run. For a finished one it drops the prompt, the last steps and, unless it is a
// child Run, the result.
func Run(o any) (any, error) {
	run, is := o.(*v1alpha1.Run)
	if !is {
		return o, nil
	}
	if isReduced(run) {
		return run, nil // client-go transforms a listed object twice
	}
	kept := *run // what is shared with it is not changed
	kept.ObjectMeta = runMeta(run)
	kept.Spec.Input = reducedInput(run)
	if !runstatus.IsFinished(run) || run.Spec.Agent == "" {
		return &kept, nil
	}
	kept.Spec.Prompt, kept.Spec.Input = "", nil
	kept.Status.Progress = reducedProgress(run)
	return &kept, nil
}

// isReduced reports whether a Run has nothing that the cache drops.
func isReduced(run *v1alpha1.Run) bool {
	if !hasRunMeta(run) || run.Spec.Input != reducedInput(run) {
		return false
	}
	if !runstatus.IsFinished(run) || run.Spec.Agent == "" {
		return true
	}
	return run.Spec.Prompt == "" && run.Spec.Input == nil && hasReducedProgress(run)
}

func hasReducedProgress(run *v1alpha1.Run) bool {
	p := run.Status.Progress
	if p == nil {
		return true
	}
	if p.Recent != nil || p.Step != nil || p.Confinement != nil || p.Refused != nil {
		return false
	}
	return p.Result == nil || children.ParentOf(run) != nil || p.Result.Text == "" && p.Result.Output == "" && p.Result.Files == nil
}

func reducedProgress(run *v1alpha1.Run) *v1alpha1.RunProgress {
	if run.Status.Progress == nil {
		return nil
	}
	p := *run.Status.Progress
	p.Recent, p.Step, p.Confinement, p.Refused = nil, nil, nil, nil
	if p.Result != nil && children.ParentOf(run) == nil {
		r := *p.Result
		r.Text, r.Output, r.Files = "", "", nil
		p.Result = &r
	}
	return &p
}

// tooLong replaces an input that is longer than a Run may have. The schema of Run does not bound it, and the Run ends
// because of its length.
var tooLong = &runtime.RawExtension{Raw: []byte(`"` + strings.Repeat("x", snapshot.MaxInput) + `"`)}

func reducedInput(run *v1alpha1.Run) *runtime.RawExtension {
	if run.Spec.Input != nil && len(run.Spec.Input.Raw) > snapshot.MaxInput {
		return tooLong
	}
	return run.Spec.Input
}

// NetworkPolicy returns what the cache keeps of a NetworkPolicy: which pods it selects, and digests of its spec.
func NetworkPolicy(o any) (any, error) {
	policy, is := o.(*networkingv1.NetworkPolicy)
	if !is {
		return o, nil
	}
	kept := &networkingv1.NetworkPolicy{ObjectMeta: identity(&policy.ObjectMeta), Spec: egress.Digest(policy.Spec)}
	kept.Labels = chosen(policy.Labels, v1alpha1.LabelEgress)
	return kept, nil
}

// maxRequired is the maximum number of revisions that a revision requires: one for each node of a Workflow.
const maxRequired = 64 + 16

// hashLength is the length of the hash of a revision.
const hashLength = 64

// Revision returns what the cache keeps of a ConfigMap with the label of revisions: metadata without data. A hash that
// does not match the name, and required revisions that no Workflow can have, do not come from the operator and are
// dropped.
func Revision(o any) (any, error) {
	switch o := o.(type) {
	case *metav1.PartialObjectMetadata:
		return &metav1.PartialObjectMetadata{ObjectMeta: revisionMeta(&o.ObjectMeta)}, nil
	case *corev1.ConfigMap:
		return &corev1.ConfigMap{ObjectMeta: revisionMeta(&o.ObjectMeta)}, nil
	}
	return o, nil
}

func revisionMeta(m *metav1.ObjectMeta) metav1.ObjectMeta {
	kept := identity(m)
	kept.Labels = chosen(m.Labels, v1alpha1.LabelRevision, v1alpha1.LabelAgent, v1alpha1.LabelWorkflow)
	hash := m.Annotations[v1alpha1.AnnotationRevisionHash]
	if !isHash(hash) || snapshot.Name(hash) != m.Name {
		return kept
	}
	kept.Annotations = map[string]string{v1alpha1.AnnotationRevisionHash: hash}
	if required := m.Annotations[v1alpha1.AnnotationRequiredRevisions]; areHashes(required) {
		kept.Annotations[v1alpha1.AnnotationRequiredRevisions] = required
	}
	return kept
}

// areHashes reports whether a text is a list of hashes that a revision can require.
func areHashes(text string) bool {
	if len(text) > maxRequired*(hashLength+1) {
		return false
	}
	for hash := range strings.SplitSeq(text, ",") {
		if !isHash(hash) {
			return false
		}
	}
	return true
}

func isHash(text string) bool {
	return len(text) == hashLength && strings.Trim(text, "0123456789abcdef") == ""
}

// maxModes is how many access modes there are.
const maxModes = 4

// VolumeClaim returns what the cache keeps of a PersistentVolumeClaim: its owner, its retention, its access modes, its
// size and its phase.
func VolumeClaim(o any) (any, error) {
	claim, is := o.(*corev1.PersistentVolumeClaim)
	if !is {
		return o, nil
	}
	kept := &corev1.PersistentVolumeClaim{ObjectMeta: identity(&claim.ObjectMeta)}
	kept.OwnerReferences = reducedOwners(claim.OwnerReferences)
	kept.Labels = chosen(claim.Labels, v1alpha1.LabelRun)
	kept.Annotations = chosen(claim.Annotations, v1alpha1.AnnotationRetain, v1alpha1.AnnotationRetention, v1alpha1.AnnotationFileOwner, v1alpha1.AnnotationUsedBy)
	kept.Spec.AccessModes = claim.Spec.AccessModes[:min(len(claim.Spec.AccessModes), maxModes)]
	if size, has := claim.Spec.Resources.Requests[corev1.ResourceStorage]; has { // that of a copy is as large
		kept.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: size}
	}
	kept.Status.Phase = claim.Status.Phase
	return kept, nil
}
