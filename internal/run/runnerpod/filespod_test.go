package runnerpod

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/deckhand-dev/deckhand/api/v1alpha1"
	"github.com/deckhand-dev/deckhand/internal/testing/gen"
)

// The whole pod that reads files, to be read: it can change nothing and has no token.
func TestFilesPod(t *testing.T) {
	user := int64(1000)
	in := newInput(t, gen.Run(), gen.Agent(gen.Durable, func(a *v1alpha1.Agent) {
		a.Spec.PodTemplate = &v1alpha1.PodTemplate{RunAsUser: &user, NodeSelector: map[string]string{"pool": "agents"}}
	}), gen.Objects())
	claim := NewVolumeClaim(in)
	for file, node := range map[string]string{"filespod.yaml": "", "filespod-on-node.yaml": "node-1"} {
		golden(t, file, FilesPodOf(claim).Pod(in.Run, claim.Name, WorkspaceFolder, node))
	}
}

func TestFilesPodOfAClaim(t *testing.T) {
	for name, tc := range map[string]struct {
		annotation string
		want       FilesPod
	}{
		"a claim without the annotation":          {"", FilesPod{RunAsUser: uid}},
		"a claim of another user":                 {`{"image":"runner:1","runAsUser":1000}`, FilesPod{Image: "runner:1", RunAsUser: 1000}},
		"a claim of the default user":             {`{"image":"runner:1"}`, FilesPod{Image: "runner:1", RunAsUser: uid}},
		"an annotation that is only half a value": {`{"image":"runner:1","runAsUser":"root"}`, FilesPod{RunAsUser: uid}},
	} {
		t.Run(name, func(t *testing.T) {
			claim := &corev1.PersistentVolumeClaim{}
			claim.Annotations = map[string]string{v1alpha1.AnnotationFilesPod: tc.annotation}
			if diff := cmp.Diff(tc.want, FilesPodOf(claim)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestWhichPodsReadTheFilesOfARun(t *testing.T) {
	run, another := gen.Run(), gen.Run(func(r *v1alpha1.Run) { r.UID = "another" })
	plain := FilesPod{}.Pod(run, "claim", WorkspaceFolder, "")
	plain.Labels = nil
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"a pod that was created for the Run":  {FilesPod{}.Pod(run, "claim", WorkspaceFolder, ""), true},
		"a pod that was created for another":  {FilesPod{}.Pod(another, "claim", WorkspaceFolder, ""), false},
		"a pod of the Run without the label":  {plain, false},
		"the pod of an attempt of the Run":    {firstPod(t), false},
		"a pod that belongs to no Run at all": {&corev1.Pod{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := IsFilesPod(tc.pod, run); got != tc.want {
				t.Errorf("it reads the files of the Run: %t", got)
			}
		})
	}
}

// The task of a pod is a projected volume of several sources; others may have none.
func TestRevisionOfAPod(t *testing.T) {
	projected := func(name string, sources ...corev1.VolumeProjection) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: sources}}}
	}
	revision := RevisionVolume("agent-1").Projected.Sources[0]
	for name, tc := range map[string]struct {
		volumes []corev1.Volume
		want    string
	}{
		"a pod that the operator keeps":                  {[]corev1.Volume{RevisionVolume("agent-1")}, "agent-1"},
		"a task with other sources before":               {[]corev1.Volume{projected(volumeOfTask, corev1.VolumeProjection{}, revision)}, "agent-1"},
		"a task without a ConfigMap":                     {[]corev1.Volume{projected(volumeOfTask, corev1.VolumeProjection{})}, ""},
		"a ConfigMap in a volume of another name":        {[]corev1.Volume{projected("token", revision)}, ""},
		"a volume of that name that is not projected":    {[]corev1.Volume{{Name: volumeOfTask}}, ""},
		"the task is not the first of the pod's volumes": {[]corev1.Volume{{Name: "state"}, RevisionVolume("agent-2")}, "agent-2"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := RevisionName(&corev1.Pod{Spec: corev1.PodSpec{Volumes: tc.volumes}}); got != tc.want {
				t.Errorf("the revision is %q, want %q", got, tc.want)
			}
		})
	}
	if pod := firstPod(t); RevisionName(pod) == "" {
		t.Error("the pod of an attempt has no revision")
	}
}
